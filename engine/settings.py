"""Settings of a person or a machine, from the environment and `.env`.

What a run does is the manifest's business.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from engine.errors import SettingsError, UsageError
from engine.rules.names import check_path, check_text, expanded

_OPENROUTER = "openrouter.ai"
_LONGEST_INTERVAL_S = 86_400.0


def _place(path: Path) -> Path:
    return expanded(check_path(str(path)))


Place = Annotated[Path, AfterValidator(_place)]
"""A path; `~` is somebody's home."""


class Settings(BaseSettings):
    """Every setting; `sample.env` lists the same ones (a test holds them equal)."""

    model_config = SettingsConfigDict(
        env_prefix="EAGLEGEN_", env_ignore_empty=True, extra="ignore", frozen=True
    )

    api_key: SecretStr | None = None
    """API key for any endpoint; goes before OPENROUTER_API_KEY."""
    openrouter_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("OPENROUTER_API_KEY")
    )
    """API key that is sent to openrouter.ai only."""
    theme: Annotated[str, AfterValidator(check_text)] = "dark"
    """Colour theme: dark, light, or the name of a file in the theme folder."""
    ascii: bool = False
    """Draw the screen with ASCII characters only, for terminals and fonts without others."""
    fps: float = Field(default=2.0, gt=0, le=10)
    """How often the screen is drawn, per second."""
    bandwidth_kb: float = Field(default=8.0, gt=0)
    """Most kilobytes per second that the screen may send; beyond it frames are left out."""
    interval_s: float = Field(default=5.0, gt=0, le=_LONGEST_INTERVAL_S)
    """Seconds between two progress lines when headless."""
    cache_dir: Place | None = None
    """Folder for the vocabulary; empty: the user's cache folder."""
    tokenizer_path: Place | None = None
    """A tiktoken.model file to use instead of the one that is found."""


def load_settings(*folders: Path) -> Settings:
    """Settings from the environment, then `.env` in the given folders (the last one wins)."""
    files = tuple(folder / ".env" for folder in folders)
    try:
        return _with_files(files)
    except ValidationError as error:
        problems = "; ".join(_sentence(item) for item in error.errors(include_input=False))
        raise SettingsError(f"environment or .env: {problems}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{' or '.join(map(str, files))}: not UTF-8 text") from None
    except OSError as error:
        raise SettingsError(f"{error.filename}: cannot be read: {error.strerror}") from None


def key_for(settings: Settings, base_url: str) -> str | None:
    """The key to send to this endpoint, or None where it gets none.

    Raises UsageError where OpenRouter itself is asked without a key.
    """
    key = _plain(settings.api_key)
    if key or not is_openrouter(base_url):
        return key
    key = _plain(settings.openrouter_api_key)
    if key is None:
        raise UsageError(
            "OpenRouter needs an API key and there is none",
            hint="Set OPENROUTER_API_KEY (or EAGLEGEN_API_KEY) in the environment or in .env.",
        )
    return key


def is_openrouter(base_url: str) -> bool:
    """Whether the URL is OpenRouter's own host, over TLS."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    return parts.scheme == "https" and (host == _OPENROUTER or host.endswith("." + _OPENROUTER))


def _plain(secret: SecretStr | None) -> str | None:
    """A key that can stand in a header; None for an empty one. The error does not repeat it."""
    key = "" if secret is None else secret.get_secret_value().strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(
            "the API key holds characters that no key has: a space, a line break, or non-ASCII",
            hint="Copy it anew into the environment or into .env.",
        )
    return key or None


def _with_files(files: tuple[Path, ...]) -> Settings:
    class Located(Settings):
        model_config = SettingsConfigDict(env_file=files, env_file_encoding="utf-8")

    return Located()


def _sentence(item: Any) -> str:
    name = str(item["loc"][0]).upper() if item["loc"] else "settings"
    name = name if name.startswith(("EAGLEGEN_", "OPENROUTER_")) else f"EAGLEGEN_{name}"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[:1].lower()}{message[1:]}"

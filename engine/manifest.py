"""A manifest (TOML text) becomes a checked, immutable Manifest, or an error that names the line."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator

from engine.errors import ManifestError
from engine.tomlplace import line_of

Turns = Literal["all", "first", "last"]
Api = Literal["auto", "openrouter", "vllm", "sglang", "openai"]
TOKENIZERS = ("kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking", "none")
_OWNED_BODY_KEYS = frozenset({"model", "messages", "stream", "tools", "provider"})
_SECRET_WORDS = frozenset(
    {"authorization", "auth", "key", "apikey", "token", "secret", "password", "cookie"}
)
_SECRET_VALUE = re.compile(r"(?i)\b(?:bearer|basic)\s|(?<![a-z])sk-")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUN_FILES = frozenset(
    {"run.json", "run.lock", "status.json", "control.sock", "events.jsonl", "history.jsonl"}
)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class RunSection(_Section):
    """`[run]`."""

    name: str = Field(min_length=1)
    output: str = Field(min_length=1)


class Endpoint(_Section):
    """`[endpoint]`: whom to ask, and how."""

    base_url: str = Field(pattern=r"^https?://[^\s/]+")
    model: str = Field(min_length=1)
    tokenizer: Literal["kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking", "none"] = "none"
    tokenizer_path: str | None = None
    thinking: bool = True
    api: Api = "auto"
    tools_mode: Literal["raw", "api"] = "raw"
    token_ids: Literal["auto", "yes", "no"] = "auto"  # noqa: S105 - no password: vocabulary ids
    stream: Literal[False] = False
    response_cache: bool = True
    headers: dict[str, str] = Field(default_factory=dict)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    provider: dict[str, Any] = Field(default_factory=dict)

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        check_url(url)
        return url

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            words = re.split(r"[^a-z]+", name.lower())
            if not _SECRET_WORDS.isdisjoint(words) or _SECRET_VALUE.search(value):
                raise ValueError(
                    f"{name} would put a key into run.json; set EAGLEGEN_API_KEY "
                    "(or OPENROUTER_API_KEY) in the environment or .env"
                )
        return headers

    @field_validator("extra_body")
    @classmethod
    def _no_owned_keys(cls, body: dict[str, Any]) -> dict[str, Any]:
        return _checked_body(body)


class Limits(_Section):
    """`[limits]`: requests in flight, seconds, USD."""

    concurrency: int = Field(default=2000, ge=1, le=100_000)
    max_cost_usd: float | None = Field(default=None, gt=0)
    request_timeout_s: float = Field(default=1800, gt=0)
    max_attempts: int = Field(default=8, ge=1, le=1000)
    on_length: Literal["keep", "retry"] = "keep"


class Dataset(_Section):
    """`[[datasets]]`: one source of prompts; `prompts` is the manifest's prompt total."""

    name: str
    source: str = Field(min_length=1)
    prompts: int = Field(ge=1)
    token_budget: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)
    turns: Turns = "all"
    sampling: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _folder_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a dataset's name becomes a folder: letters, digits, '.', '_', '-'")
        if name in _RUN_FILES:
            raise ValueError(f"{name} is a file of the run directory; choose another name")
        return name

    @field_validator("sampling")
    @classmethod
    def _no_owned_keys(cls, body: dict[str, Any]) -> dict[str, Any]:
        return _checked_body(body)


class Manifest(_Section):
    """The whole manifest, paths still as written (see `source_path`, `output_path`)."""

    run: RunSection
    endpoint: Endpoint
    sampling: dict[str, Any] = Field(default_factory=dict)
    limits: Limits = Limits()
    datasets: tuple[Dataset, ...] = Field(min_length=1, strict=False)
    _folder: Path = PrivateAttr(default=Path())

    def model_post_init(self, context: Any, /) -> None:
        """Take the manifest's own folder from the validation context."""
        if context:
            self._folder = context["folder"]

    @field_validator("sampling")
    @classmethod
    def _no_owned_keys(cls, body: dict[str, Any]) -> dict[str, Any]:
        return _checked_body(body)

    @field_validator("datasets")
    @classmethod
    def _distinct(cls, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
        names = [dataset.name for dataset in datasets]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two datasets are named {doubled[0]}")
        return datasets

    @property
    def output_path(self) -> Path:
        """Where the run directory is; relative to the manifest's folder."""
        return self._folder / self.run.output

    @property
    def tokenizer_file(self) -> Path | None:
        """The vocabulary file the manifest names; relative to its folder."""
        named = self.endpoint.tokenizer_path
        return None if named is None else self._folder / named

    def source_path(self, dataset: Dataset) -> Path:
        """Where a dataset's prompts are; relative to the manifest's folder."""
        return self._folder / dataset.source

    def sampling_of(self, dataset: Dataset) -> dict[str, Any]:
        """The run's sampling with the dataset's overrides."""
        return {**self.sampling, **dataset.sampling}

    def identity(self) -> dict[str, Any]:
        """What a resume must not change (DESIGN §4), as plain JSON."""
        return {
            "model": self.endpoint.model,
            "tokenizer": self.endpoint.tokenizer,
            "thinking": self.endpoint.thinking,
            "tools_mode": self.endpoint.tools_mode,
            "extra_body": self.endpoint.extra_body,
            "datasets": {
                dataset.name: {"sampling": self.sampling_of(dataset), "turns": dataset.turns}
                for dataset in self.datasets
            },
        }


def load_manifest(path: Path) -> Manifest:
    """Read and check a manifest; every error names the file, the key and its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ManifestError(
            f"{path}: no such manifest", hint="`eaglegen-tui init` writes one to start from."
        ) from None
    except IsADirectoryError:
        raise ManifestError(f"{path} is a folder; name the manifest file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    return parse_manifest(text, path)


def parse_manifest(text: str, path: Path) -> Manifest:
    """Check a manifest's text; `path` is for messages and for relative paths."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: not valid TOML: {error}") from None
    try:
        return Manifest.model_validate(raw, context={"folder": path.parent})
    except ValidationError as error:
        raise ManifestError("\n".join(_explain(error, text, path))) from None


def check_url(url: str) -> None:
    """Raise ValueError where a base URL is malformed, or holds what would be shown or misused."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user name or key in the address would be written to run.json")
    if parts.query or parts.fragment:
        raise ValueError("the address ends with a path such as /v1, without ? or #")
    if not parts.hostname or parts.port == 0:  # reading `port` also refuses what is no number
        raise ValueError("the address names no host")


def _checked_body(body: dict[str, Any]) -> dict[str, Any]:
    """Refuse what would break the request, or pay for answers that nobody keeps."""
    owned = sorted(_OWNED_BODY_KEYS & set(body))
    if owned:
        raise ValueError(f"{', '.join(owned)} is set by eaglegen-tui itself")
    if "models" in body or "route" in body:
        raise ValueError("fallback models would mix several teachers into one dataset")
    if body.get("n", 1) != 1:
        raise ValueError("n must be 1: one answer of each request is kept")
    for key in ("max_tokens", "max_completion_tokens"):
        value = body.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{key} must be a whole number of at least 1, not {value!r}")
    return body


def _explain(error: ValidationError, text: str, path: Path) -> list[str]:
    items = error.errors()
    inner = {item["loc"][0] for item in items if len(item["loc"]) > 1}
    # a table whose entries are faulty is also reported as too short: only the entries matter
    return [
        _sentence(item, text, path)
        for item in items
        if not (item["type"] == "too_short" and item["loc"][0] in inner)
    ]


def _sentence(item: Any, text: str, path: Path) -> str:
    loc = tuple(item["loc"])
    line = line_of(text, loc)
    where = f"{path}:{line}" if line else str(path)
    key = ".".join(str(part) for part in loc) or "manifest"
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), _keys_beside(loc), n=1, cutoff=0.5)
        return f"{where}: unknown key {key}" + (f"; did you mean {near[0]}?" if near else "")
    if item["type"] == "tuple_type":
        return f"{where}: {key}: write [[{key}]], once for each of them"
    if item["type"] == "missing":
        return f"{where}: {key} is missing"
    if key == "endpoint.base_url" and item["type"] == "string_pattern_mismatch":
        return f"{where}: {key}: must begin with http:// or https:// and name a host"
    if key == "endpoint.stream":
        return f"{where}: {key}: streaming is not supported yet; leave it false"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {key}: {message[:1].lower()}{message[1:]}"


def _keys_beside(loc: tuple[str | int, ...]) -> list[str]:
    models: dict[str, type[_Section]] = {
        "run": RunSection,
        "endpoint": Endpoint,
        "limits": Limits,
        "datasets": Dataset,
    }
    model = models.get(str(loc[0]), Manifest) if len(loc) > 1 else Manifest
    return list(model.model_fields)

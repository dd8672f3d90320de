"""A manifest (TOML text) becomes a checked, immutable Manifest, or an error that names the line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)

from engine.errors import ManifestError, UsageError
from engine.rules.address import check_url
from engine.rules.body import body_problems
from engine.rules.headers import header_problems
from engine.rules.json_values import json_problems
from engine.rules.names import (
    check_folder_name,
    check_path,
    check_text,
    doubled_names,
    expanded,
)
from engine.rules.problem import refuse
from engine.rules.routing import routing_problems
from engine.rules.sentences import sentences

Turns = Literal["all", "first", "last"]
Api = Literal["auto", "openrouter", "vllm", "sglang", "openai"]
_MOST_PROMPTS, _MOST_TOKENS, _MOST_USD = 10**10, 10**15, 10**9
_MOST_SECONDS = 30 * 86_400
"""Bounds that a typing error passes and no run does; run.json holds 64 bits."""


def _checked_body(body: dict[str, Any]) -> dict[str, Any]:
    refuse(body_problems(body))
    return body


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    refuse(header_problems(headers))
    return headers


def _checked_routing(routing: dict[str, Any]) -> dict[str, Any]:
    refuse([*json_problems(routing), *routing_problems(routing)])
    return routing


def _checked_url(url: str) -> str:
    check_url(url)
    return url


def _checked_name(name: str) -> str:
    check_folder_name(name)
    return name


Words = Annotated[str, Field(min_length=1), AfterValidator(check_text)]
PathText = Annotated[str, Field(min_length=1), AfterValidator(check_path)]
"""A path as written: relative to the manifest's folder, `~` for somebody's home."""
Body = Annotated[dict[str, Any], AfterValidator(_checked_body)]
Headers = Annotated[dict[str, str], AfterValidator(_checked_headers)]
Routing = Annotated[dict[str, Any], AfterValidator(_checked_routing)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class RunSection(_Section):
    """`[run]`."""

    name: str = Field(min_length=1)
    output: PathText


class Endpoint(_Section):
    """`[endpoint]`: whom to ask, and how."""

    base_url: Annotated[str, AfterValidator(_checked_url)]
    model: Words
    tokenizer: Literal["kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking", "none"] = "none"
    tokenizer_path: PathText | None = None
    thinking: bool = True
    api: Api = "auto"
    tools_mode: Literal["raw", "api"] = "raw"
    token_ids: Literal["auto", "yes", "no"] = "auto"  # noqa: S105 - no password: vocabulary ids
    stream: Literal[False] = False
    response_cache: bool = True
    headers: Headers = Field(default_factory=dict)
    extra_body: Body = Field(default_factory=dict)
    provider: Routing = Field(default_factory=dict)

    def at(self, base_url: str, *, option: str = "--base-url") -> Endpoint:
        """The same endpoint at another address; raises UsageError, which never repeats it."""
        try:
            check_url(base_url)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from None
        return self.model_copy(update={"base_url": base_url})


class Limits(_Section):
    """`[limits]`: requests in flight, seconds, USD."""

    concurrency: int = Field(default=2000, ge=1, le=100_000)
    max_cost_usd: float | None = Field(default=None, gt=0, le=_MOST_USD)
    request_timeout_s: float = Field(default=1800, gt=0, le=_MOST_SECONDS)
    max_attempts: int = Field(default=8, ge=1, le=1000)
    on_length: Literal["keep", "retry"] = "keep"


class Dataset(_Section):
    """`[[datasets]]`: one source of prompts; `prompts` is the manifest's prompt total."""

    name: Annotated[str, AfterValidator(_checked_name)]
    source: PathText
    prompts: int = Field(ge=1, le=_MOST_PROMPTS)
    token_budget: int | None = Field(default=None, ge=1, le=_MOST_TOKENS)
    max_cost_usd: float | None = Field(default=None, gt=0, le=_MOST_USD)
    turns: Turns = "all"
    sampling: Body = Field(default_factory=dict)


class Manifest(_Section):
    """The whole manifest, paths still as written (see `source_path`, `output_path`)."""

    run: RunSection
    endpoint: Endpoint
    sampling: Body = Field(default_factory=dict)
    limits: Limits = Limits()
    datasets: tuple[Dataset, ...] = Field(min_length=1, strict=False)
    _folder: Path = PrivateAttr(default=Path())

    def model_post_init(self, context: Any, /) -> None:
        """Take the manifest's own folder from the validation context."""
        if context:
            self._folder = context["folder"]

    @field_validator("datasets")
    @classmethod
    def _distinct(cls, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
        refuse(doubled_names([dataset.name for dataset in datasets]))
        return datasets

    @property
    def output_path(self) -> Path:
        """Where the run directory is; relative to the manifest's folder."""
        return self._folder / expanded(self.run.output)

    @property
    def tokenizer_file(self) -> Path | None:
        """The vocabulary file the manifest names; relative to its folder."""
        named = self.endpoint.tokenizer_path
        return None if named is None else self._folder / expanded(named)

    def source_path(self, dataset: Dataset) -> Path:
        """Where a dataset's prompts are; relative to the manifest's folder."""
        return self._folder / expanded(dataset.source)

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
    except RecursionError:
        raise ManifestError(f"{path}: not valid TOML: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits is none of tomllib's own errors
        raise ManifestError(f"{path}: not valid TOML: {error}") from None
    try:
        return Manifest.model_validate(raw, context={"folder": path.parent})
    except ValidationError as error:
        said = sentences(error, raw, text, path, _keys_beside)
        raise ManifestError("\n".join(said)) from None


def _keys_beside(loc: tuple[str | int, ...]) -> list[str]:
    models: dict[str, type[_Section]] = {
        "run": RunSection,
        "endpoint": Endpoint,
        "limits": Limits,
        "datasets": Dataset,
    }
    model = models.get(str(loc[0]), Manifest) if len(loc) > 1 else Manifest
    return list(model.model_fields)

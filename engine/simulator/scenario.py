"""What the local provider plays: its hosts, its weather and its money, as frozen records."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from engine.errors import UsageError
from engine.rules.problem import Problem, refuse
from engine.simulator.faults import FAULTS
from engine.simulator.scenario_words import builtin_names, nearest, sentences


class ScenarioError(UsageError):
    """A scenario file that cannot be played; names file, line and key."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Fraction = Annotated[float, Field(ge=0, le=1)]
ReplyBytes = Annotated[int, Field(ge=1500)]
Share = dict[str, Fraction]
"""Fault name: share of the requests that suffer it, 0 to 1."""

Api = Literal["openrouter", "vllm", "sglang"]
RetryHint = Literal["header", "metadata", "metadata_headers", "availability", "none"]
Artefact = Literal["verbatim", "spaced", "trimmed"]
ReasoningField = Literal[
    "reasoning", "reasoning_content", "reasoning_details", "inline", "inline_no_open"
]


class Latency(_Record):
    """Seconds from the request to its reply: lognormal, by its mean and log-deviation."""

    mean_s: NonNegativeFloat = 1.0
    sigma: NonNegativeFloat = 0.5
    refusal_s: NonNegativeFloat = 0.05
    """How long a request that is refused at the door takes."""


class Length(_Record):
    """Completion tokens: lognormal with a heavy tail, cut at `max`."""

    mean_tokens: PositiveFloat = 600.0
    sigma: NonNegativeFloat = 0.8
    max: PositiveInt = 16_384
    reasoning_share: Fraction = 0.55


class Stream(_Record):
    """How replies with `stream = true` arrive."""

    tokens_per_chunk: PositiveInt = 8
    first_share: Fraction = 0.2
    """Share of the latency before the first event."""
    usage_chunk: Literal["repeat", "empty"] = "repeat"
    """The chunk with the usage repeats the terminal one, or has empty choices."""
    comments: NonNegativeInt = 1
    """Keep-alive comments before the first event."""
    done: bool = True
    """Ends with `[DONE]`."""
    split_bytes: bool = False
    """Cuts the events into packets anywhere, within characters too."""


class Host(_Record):
    """One upstream host of the model, as the endpoints page of OpenRouter lists it."""

    name: str
    tag: str
    quantization: str = "unknown"
    context_length: int = 262_144
    max_completion_tokens: int = 262_144
    prompt_usd_per_m: NonNegativeFloat = 0.45
    completion_usd_per_m: NonNegativeFloat = 2.25
    weight: NonNegativeFloat = 1.0
    capacity: NonNegativeInt | None = None
    """Requests in flight that it takes; above, it refuses. None: no limit."""
    slots: PositiveInt | None = None
    """Requests that it works on at a time; more wait in its queue and are never refused."""
    latency_factor: NonNegativeFloat = 1.0
    faults: Share = {}
    artefact: Artefact = "verbatim"
    reasoning_field: ReasoningField = "reasoning"
    system_prompt: bool = False
    """Injects the old default system prompt (18 prompt tokens)."""
    counts_im_end: bool = True
    non_canonical: Fraction = 0.0
    """Share of replies with a split that the vocabulary would not make."""
    cancels: bool = True
    """Stops billing when a streaming client leaves."""
    drops_name: bool = False
    """Ignores `message.name`, so that a raw tool declaration renders as `system`."""


class Window(_Record):
    """A spell of other weather, counted in seconds or requests since the first request."""

    from_s: float | None = None
    to_s: float | None = None
    from_request: int | None = None
    to_request: int | None = None
    for_s: float | None = None
    """Seconds after the first request inside the window at which it closes."""
    provider: str | None = None
    """Tag of the one host it concerns; None: all."""
    capacity: NonNegativeInt | None = None
    refusal: str = "rate_limit_upstream"
    retry_hint: RetryHint | None = None
    retry_after_s: float | None = None
    latency_factor: NonNegativeFloat = 1.0
    faults: Share = {}


class Account(_Record):
    """Who may ask, and with how much money (USD)."""

    keys: tuple[str, ...] = ()
    """Accepted bearer keys; empty: any, and none too."""
    total_credits: float = 1_000_000.0
    total_usage: float = 0.0
    limit: float | None = None
    credits_forbidden: bool = False
    """`/credits` answers 403, as with a key that may not manage the account."""
    in_flight_budget: float | None = None
    """USD that requests in flight may hold together; None: no such budget."""
    assumed_max_tokens: int = 8192
    """What a hold assumes at most, and where `max_tokens` is absent."""
    settlement_s: float = 2.0
    """How long a hold stands after its request has ended."""


def _default_hosts() -> tuple[Host, ...]:
    """Return three of the hosts of 2026-09-23 (facts, §4)."""
    return (
        Host(
            name="SiliconFlow",
            tag="siliconflow/int4",
            quantization="int4",
            max_completion_tokens=235_929,
            weight=2.0,
        ),
        Host(
            name="AtlasCloud",
            tag="atlas-cloud/int4",
            quantization="int4",
            prompt_usd_per_m=0.50,
            completion_usd_per_m=2.50,
        ),
        Host(name="Novita", tag="novita", prompt_usd_per_m=0.60, completion_usd_per_m=3.0),
    )


class Scenario(_Record):
    """Everything that the local provider does, from one seed."""

    seed: int = 0
    speed: PositiveFloat = 1.0
    """All seconds of the scenario pass this many times faster; retry hints stay as written."""
    api: Api = "openrouter"
    model: str = "moonshotai/kimi-k2.5"
    canonical: str = "moonshotai/kimi-k2.5-0127"
    tokenizer: str = "kimi-k2.5"
    expiration_date: str | None = None
    reasoning_mandatory: bool = False
    keepalive_s: PositiveFloat = 600.0
    """Real seconds after which an idle connection is dropped."""
    reply_bytes: ReplyBytes | None = None
    """Fixed size of a reply's body, for benchmarks."""
    router_fallback: bool = False
    """The router asks the next host when one refuses, as OpenRouter does.

    Off by default, so that the client sees every fault that the scenario plays.
    """
    retry_hint: RetryHint | None = None
    """Where refusals say when to try again; None: as each kind of refusal does by itself."""
    retry_after_s: float | None = None
    response_cache: bool = True
    caches_bad_replies: bool = False
    """Whether spoilt replies with status 200 are cached as well (the documents do not say)."""
    returns_token_ids: bool = True
    """vLLM and SGLang only: obeys `return_token_ids`."""
    generation_delay_s: float = 3.0
    """How long `/generation` answers 404 after a completion."""
    edge_newlines: Fraction = 0.1
    """Share of replies whose reasoning ends, or whose content begins, with a newline."""
    tool_calls: Fraction = 0.6
    """Share of the prompts with tools that are answered by a tool call."""
    latency: Latency = Latency()
    length: Length = Length()
    stream: Stream = Stream()
    account: Account = Account()
    faults: Share = {}
    providers: tuple[Host, ...] = Field(default_factory=_default_hosts, min_length=1)
    windows: tuple[Window, ...] = ()

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        refuse([*self._stray_windows(), *self._unknown_faults()])
        return self

    def _stray_windows(self) -> Iterator[Problem]:
        tags = [host.tag for host in self.providers]
        for index, window in enumerate(self.windows):
            if window.provider is not None and window.provider not in tags:
                words = f"no provider has the tag {window.provider}{nearest(window.provider, tags)}"
                yield Problem(("windows", index, "provider"), words)

    def _unknown_faults(self) -> Iterator[Problem]:
        named: list[tuple[tuple[str | int, ...], str]] = [
            (("faults", name), name) for name in self.faults
        ]
        for kind in ("providers", "windows"):
            for index, record in enumerate(getattr(self, kind)):
                named += [((kind, index, "faults", name), name) for name in record.faults]
        named += [(("windows", n, "refusal"), w.refusal) for n, w in enumerate(self.windows)]
        for place, name in named:
            if name not in FAULTS:
                yield Problem(place, f"unknown fault {name!r}{nearest(name, list(FAULTS))}")

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts that are played: a server of one's own is one host, and costs nothing."""
        if self.api == "openrouter":
            return self.providers
        free = {"prompt_usd_per_m": 0.0, "completion_usd_per_m": 0.0}
        return (self.providers[0].model_copy(update=free),)

    @classmethod
    def from_toml(cls, path: str | Path) -> Scenario:
        """Read a scenario file, or a built-in one by its name (`demo`).

        Raises ScenarioError, which names the file, the line and the key.
        """
        try:
            builtin = files(__package__).joinpath("scenarios", f"{path}.toml")
            source = builtin if builtin.is_file() else Path(path)
            text = source.read_text("utf-8-sig")
        except FileNotFoundError:
            raise ScenarioError(
                f"there is no scenario {path}", hint=f"Built in: {', '.join(builtin_names())}."
            ) from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ScenarioError(f"{path}: cannot be read as UTF-8 text: {reason}") from None
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise ScenarioError(f"{path}: not valid TOML: {error}") from None
        return cls.from_dict(data, name=str(path), text=text)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, name: str = "scenario", text: str = "") -> Scenario:
        """Check parsed TOML; unknown keys are errors. `text` is for the lines of what is wrong."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            said = sentences(error.errors(include_url=False), name, text, _known_keys())
            raise ScenarioError("\n".join(said)) from None

    def with_(self, **changes: Any) -> Scenario:
        """Return this scenario with other values, checked like a file."""
        return Scenario.model_validate({**self.model_dump(), **changes})


def _known_keys() -> list[str]:
    records = (Scenario, Host, Window, Account, Latency, Length, Stream)
    return [key for record in records for key in record.model_fields]

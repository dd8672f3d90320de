"""The immutable picture of a run that every front end draws from.

Times are epoch seconds (UTC), durations seconds, costs USD; unknown is None, never 0.
`engine.view.frame` turns a Snapshot into status.json (DESIGN §6) and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

RunState = Literal["starting", "running", "paused", "waiting", "draining", "done", "stopped"]
DatasetState = Literal["queued", "running", "paused", "skipped", "done", "budget"]
Verdict = Literal["ACTIVE", "RESOLVED", "STRUCTURAL"]
BindingLimit = Literal["prompts", "tokens", "dollars", ""]
NO_LIMIT: BindingLimit = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Evenly spaced means on the time axis: `values[i]` covers `start + i*width` seconds on.

    None marks a span in which work was paused: a gap, not a zero.
    """

    start: float
    width: float
    values: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class FamilySeries:
    """Failed attempts of one family: `counts.values[i]` is how many fell into that bucket.

    Empty values where none fell into any bucket that is still there: the family keeps its place.
    """

    family: str
    counts: Series


@dataclass(frozen=True, slots=True)
class Mark:
    """An operator's command on the time axis."""

    at: float
    command: str
    """Its wire name (DESIGN §6): `pause`, `throttle`, ..."""
    text: str
    """The command in a few words: `pause B7`, `throttle 500`."""
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Spell:
    """A span in which work was held: `paused` by order, or `waiting` by the engine itself."""

    start: float
    end: float | None
    """None while it lasts."""
    state: str


@dataclass(frozen=True, slots=True)
class EventSeries:
    """What stands on the time axis beside the numbers, the oldest first."""

    marks: tuple[Mark, ...] = ()
    spells: tuple[Spell, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """What `check` would have said as this session began; None where no price is known."""

    usd_low: float | None
    usd_high: float | None
    """USD at the end, with what earlier sessions had spent."""
    seconds_low: float
    seconds_high: float
    """Of this session."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One error family of one provider in one dataset, with its verdict and the evidence."""

    family: str
    provider: str | None
    count: int
    verdict: Verdict | None
    first_at: float
    last_at: float
    evidence: str
    recent: int = 0
    """Failed attempts of this family in the last minute."""
    trend: Literal["rising", "falling", "steady", ""] = ""
    action: str = ""
    """What the operator can do about it; empty where there is nothing to do."""
    words: str = ""
    """The newest answer of the server that made it, in its own words."""


@dataclass(frozen=True, slots=True)
class AttemptRate:
    """Failed attempts of all attempts that ended: the error gauge's numbers (never of prompts)."""

    recent_failed: int = 0
    recent_total: int = 0
    recent_s: float = 300.0
    """Length of the recent window in seconds."""
    failed: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from sending to the reply, over all rows; None while there are none."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Flying:
    """A request in flight."""

    id: str
    age_s: float
    attempt: int


@dataclass(frozen=True, slots=True)
class RowLine:
    """One row as it was saved; `text` is the beginning of its answer, made safe."""

    id: str
    at: float
    provider: str | None
    tokens: int | None
    grade: str
    flags: tuple[str, ...]
    finish_reason: str
    latency_s: float
    text: str


@dataclass(frozen=True, slots=True)
class FailureLine:
    """One prompt that was given up, with the server's own words."""

    id: str
    at: float
    family: str
    message: str
    attempts: int


@dataclass(frozen=True, slots=True)
class DatasetView:
    """One dataset. Prompts: `prompts == ok + failed + invalid + in_flight + left`, always."""

    name: str
    state: DatasetState
    prompts: int
    """The manifest's prompt total (with --allow-short: what the source holds)."""
    ok: int = 0
    failed: int = 0
    invalid: int = 0
    in_flight: int = 0
    left: int = 0
    rows: int = 0
    attempt_errors: int = 0
    completion_tokens: int = 0
    token_budget: int | None = None
    cost_usd: float | None = None
    rows_per_s: float = 0.0
    eta_s: float | None = None
    exactness: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    errors: tuple[ErrorLine, ...] = ()
    # what the screens need beyond status.json
    reason: str = ""
    """Why the state is what it is, in words ('paused by p 14:02', 'starts in the free slots')."""
    manifest_prompts: int | None = None
    """The manifest's number where `prompts` is not it (--allow-short)."""
    pilot: int | None = None
    """--limit N: only the first N prompts are done now."""
    waiting: int = 0
    """Prompts in `left` that wait for a retry."""
    restored_rows: int = 0
    """Rows that an earlier session had written."""
    rate_limited_by: BindingLimit = ""
    """What ends this dataset first: the ETA's binding limit."""
    mean_completion_tokens: float | None = None
    attempts: AttemptRate = AttemptRate()
    rate: Series = Series(0.0, 1.0)
    """Rows per second, the last minutes."""
    errors_by_family: tuple[FamilySeries, ...] = ()
    """On the axis of `rate`."""
    events: EventSeries = EventSeries()
    """The spells in which this dataset was paused; its marks stand in the run's."""
    forecast: Forecast | None = None
    exportable_tokens: int | None = 0
    """Supervised tokens of rows graded engine or matched, without flags; None: not known here."""
    latency: Latency = Latency()
    lengths: tuple[tuple[int, int], ...] = ()
    """(upper bound, rows) of completion tokens, in powers of two; empty buckets between stay."""
    finish_reasons: dict[str, int] = field(default_factory=dict)
    slowest: tuple[Flying, ...] = ()
    """The longest in flight, the oldest first."""
    last_rows: tuple[RowLine, ...] = ()
    """Rows of this session, the newest first."""
    last_failures: tuple[FailureLine, ...] = ()
    """Prompts given up, the newest first."""


@dataclass(frozen=True, slots=True)
class ProviderView:
    """One provider over the whole run."""

    name: str
    rows: int = 0
    errors: int = 0
    in_flight: int | None = None
    completion_tokens: int = 0
    tokens_per_s: float = 0.0
    cost_usd: float | None = None
    profile: str = ""
    """How it distorts text: `verbatim`, `spaced`, `trimmed`, or empty while unknown."""
    prompt_delta: str = ""
    """A constant difference to usage.prompt_tokens, in words."""
    state: str = ""
    """`excluded`, `resting until 14:07`, or empty."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of events.jsonl as people read it."""

    at: float
    kind: str
    """`command`, `state`, `verdict`, `limit`, `provider`, `disk`, `note`."""
    text: str
    dataset: str | None = None
    origin: str = ""
    """Who gave an order: `screen`, `control`, or a signal's name; empty for what is no order."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole run at one moment."""

    run: str
    state: RunState
    reason: str
    pid: int
    host: str
    started_at: float
    heartbeat_at: float
    elapsed_s: float
    model: str
    limit: int
    limit_ceiling: int
    in_flight: int
    rows_per_s: float
    completion_tokens_per_s: float
    cost_usd: float | None
    cost_unknown_attempts: int
    max_cost_usd: float | None
    loop_lag_ms: float
    datasets: tuple[DatasetView, ...]
    schema: int = 1
    # what the screens need beyond status.json
    output: str = ""
    endpoint: str = ""
    limit_reason: str = ""
    """Why the limit is where it is: 'ramping up', '429 burst from SiliconFlow'."""
    in_flight_cost_usd: float | None = None
    """What the requests in flight may still cost: what a stop would throw away."""
    projected_cost_usd: float | None = None
    twice_attempts: int = 0
    """Requests whose replies nobody saw and that may be billed beside those of their rows."""
    twice_usd: float | None = None
    """What those come to at the mean cost of a row."""
    eta_s: float | None = None
    ends_by: BindingLimit = ""
    """`dollars` where the ETA is that of `max_cost_usd`."""
    paused: bool = False
    providers: tuple[ProviderView, ...] = ()
    journal: tuple[JournalEntry, ...] = ()
    """The newest entries."""
    journal_total: int = 0
    """Entries of this session so far, so that a reader finds what is new."""
    rate: Series = Series(0.0, 1.0)
    tokens_rate: Series = Series(0.0, 1.0)
    errors_rate: Series = Series(0.0, 1.0)
    limit_series: Series = Series(0.0, 1.0)
    errors_by_family: tuple[FamilySeries, ...] = ()
    """In the order in which they were first seen, on the axis of `rate`."""
    events: EventSeries = EventSeries()
    """Every operator command, and the spells in which the run was held."""
    forecast: Forecast | None = None
    exit_code: int | None = None
    """Set with the last snapshot."""

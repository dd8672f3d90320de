"""One dataset's views in several processes as one view; pure.

Counts are summed. Quantiles cannot be: the greatest of all processes stands for them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from engine.fleet import align
from engine.view.snapshot import (
    NO_LIMIT,
    AttemptRate,
    BindingLimit,
    DatasetState,
    DatasetView,
    ErrorLine,
    EventSeries,
    Forecast,
    Latency,
    ProviderView,
    Verdict,
)

_Number = TypeVar("_Number", int, float)
_LISTED: Final = 20
_WORST: Final[dict[Verdict | None, int]] = {"STRUCTURAL": 3, "ACTIVE": 2, "RESOLVED": 1, None: 0}
_LIVELY: Final[tuple[DatasetState, ...]] = ("running", "paused", "queued")
_ENDED: Final[tuple[DatasetState, ...]] = ("budget", "skipped", "done")


class Seen(NamedTuple):
    """A dataset as one process sees it."""

    label: str
    view: DatasetView


@dataclass(frozen=True, slots=True)
class Whole:
    """What the manifest says of a dataset, over all processes."""

    prompts: int
    asked: int
    """The manifest's number, where --allow-short has lowered `prompts`."""
    token_budget: int | None = None


def merge_views(
    name: str, seen: Sequence[Seen], whole: Whole, until: float, *, unheard: bool = False
) -> DatasetView:
    """Their sum; `prompts` is the whole's, and what nobody has taken yet counts as left.

    `unheard`: a process is not among them; what is left may be its, and nothing is done then.
    """
    views = [each.view for each in seen]
    ok, failed, invalid, flying = (
        _sum(views, key) for key in ("ok", "failed", "invalid", "in_flight")
    )
    rows, tokens = _sum(views, "rows"), _sum(views, "completion_tokens")
    left = max(0, whole.prompts - ok - failed - invalid - flying)
    state = _state([view.state for view in views])
    if state == "done" and left and unheard:
        state = "running"
    return DatasetView(
        name=name,
        state=state,
        prompts=whole.prompts,
        ok=ok,
        failed=failed,
        invalid=invalid,
        in_flight=flying,
        left=left,
        rows=rows,
        attempt_errors=_sum(views, "attempt_errors"),
        completion_tokens=tokens,
        token_budget=whole.token_budget,
        cost_usd=known_sum(view.cost_usd for view in views),
        rows_per_s=sum(view.rows_per_s for view in views),
        eta_s=_eta(views),
        exactness=_counts(view.exactness for view in views),
        flags=_counts(view.flags for view in views),
        errors=merge_errors(seen),
        reason=_reason(views, state),
        manifest_prompts=whole.asked if whole.asked != whole.prompts else None,
        pilot=all_known(view.pilot for view in views),
        waiting=_sum(views, "waiting"),
        restored_rows=_sum(views, "restored_rows"),
        rate_limited_by=_binding(views),
        mean_completion_tokens=tokens / rows if rows else None,
        attempts=_attempts(views),
        rate=align.rates([(view.rate, view.rows_per_s) for view in views], until),
        errors_by_family=align.families([view.errors_by_family for view in views], until),
        events=merge_events([view.events for view in views]),
        forecast=merge_forecasts([view.forecast for view in views]),
        exportable_tokens=all_known(view.exportable_tokens for view in views),
        latency=_latency(views),
        lengths=_lengths(views),
        finish_reasons=_counts(view.finish_reasons for view in views),
        slowest=tuple(heapq.nlargest(_LISTED, _all(views, "slowest"), key=lambda f: f.age_s)),
        last_rows=tuple(heapq.nlargest(_LISTED, _all(views, "last_rows"), key=lambda r: r.at)),
        last_failures=tuple(
            heapq.nlargest(_LISTED, _all(views, "last_failures"), key=lambda r: r.at)
        ),
    )


def merge_errors(seen: Sequence[Seen]) -> tuple[ErrorLine, ...]:
    """Each family of each provider once; the worst verdict, with the evidence of who has it."""
    found: dict[tuple[str, str | None], list[tuple[str, ErrorLine]]] = {}
    for label, view in seen:
        for line in view.errors:
            found.setdefault((line.family, line.provider), []).append((label, line))
    return tuple(_error(lines, len(seen)) for lines in found.values())


def merge_events(parts: Sequence[EventSeries]) -> EventSeries:
    """Commands and held spans of all, the oldest first; the same order to all stands once."""
    marks = {(round(m.at), m.command, m.dataset): m for part in parts for m in part.marks}
    spells = {(round(s.start), s.state): s for part in parts for s in part.spells}
    return EventSeries(
        tuple(sorted(marks.values(), key=lambda mark: mark.at)),
        tuple(sorted(spells.values(), key=lambda spell: spell.start)),
    )


def merge_forecasts(parts: Sequence[Forecast | None]) -> Forecast | None:
    """Dollars summed, and the time of the slowest; None where one of them has none."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return Forecast(
        usd_low=known_sum(part.usd_low for part in known),
        usd_high=known_sum(part.usd_high for part in known),
        seconds_low=max(part.seconds_low for part in known),
        seconds_high=max(part.seconds_high for part in known),
    )


def merge_providers(parts: Sequence[Sequence[ProviderView]]) -> tuple[ProviderView, ...]:
    """Each provider once; where processes have learned different things of it, all of them."""
    found: dict[str, list[ProviderView]] = {}
    for part in parts:
        for view in part:
            found.setdefault(view.name, []).append(view)
    merged = (_provider(name, views) for name, views in found.items())
    return tuple(sorted(merged, key=lambda view: -view.rows))


def all_known(values: Iterable[_Number | None]) -> _Number | None:
    """The sum; None where one of them is not known, or where there are none."""
    told = list(values)
    known = [value for value in told if value is not None]
    return sum(known) if known and len(known) == len(told) else None


def known_sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _error(lines: list[tuple[str, ErrorLine]], total: int) -> ErrorLine:
    label, worst = max(lines, key=lambda item: (_WORST[item[1].verdict], item[1].last_at))
    newest = max((line for _, line in lines), key=lambda line: line.last_at)
    where = label if len(lines) == 1 else f"in {len(lines)} of {total}, {label} as the worst"
    return replace(
        worst,
        count=sum(line.count for _, line in lines),
        first_at=min(line.first_at for _, line in lines),
        last_at=newest.last_at,
        evidence=f"{where}: {worst.evidence}" if worst.evidence else where,
        recent=sum(line.recent for _, line in lines),
        words=newest.words or worst.words,
    )


def _state(states: Sequence[DatasetState]) -> DatasetState:
    for word in (*_LIVELY, *_ENDED):
        if word in states:
            return word
    return "queued"


def _reason(views: Sequence[DatasetView], state: DatasetState) -> str:
    words = dict.fromkeys(view.reason for view in views if view.state == state and view.reason)
    return "; ".join(words) if len(words) <= 1 else ""


def _eta(views: Sequence[DatasetView]) -> float | None:
    """When the last one is through; unknown where one of them does not know it."""
    going = [view for view in views if view.state in _LIVELY and view.left + view.in_flight]
    if not going or any(view.eta_s is None for view in going):
        return None
    return max(view.eta_s or 0.0 for view in going)


def _binding(views: Sequence[DatasetView]) -> BindingLimit:
    found = {view.rate_limited_by for view in views if view.rate_limited_by}
    return found.pop() if len(found) == 1 else NO_LIMIT


def _attempts(views: Sequence[DatasetView]) -> AttemptRate:
    rates = [view.attempts for view in views]
    return AttemptRate(
        recent_failed=sum(rate.recent_failed for rate in rates),
        recent_total=sum(rate.recent_total for rate in rates),
        recent_s=max((rate.recent_s for rate in rates), default=AttemptRate().recent_s),
        failed=sum(rate.failed for rate in rates),
        total=sum(rate.total for rate in rates),
    )


def _latency(views: Sequence[DatasetView]) -> Latency:
    def greatest(name: str) -> float | None:
        values = [getattr(view.latency, name) for view in views]
        return max((value for value in values if value is not None), default=None)

    return Latency(greatest("p50"), greatest("p90"), greatest("p99"))


def _lengths(views: Sequence[DatasetView]) -> tuple[tuple[int, int], ...]:
    rows: Counter[int] = Counter()
    for view in views:
        for bound, number in view.lengths:
            rows[bound] += number
    return tuple(sorted(rows.items()))


def _counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _sum(views: Sequence[DatasetView], name: str) -> int:
    return sum(getattr(view, name) for view in views)


def _all(views: Sequence[DatasetView], name: str) -> list[Any]:
    return [item for view in views for item in getattr(view, name)]


def _provider(name: str, views: Sequence[ProviderView]) -> ProviderView:
    flying = [view.in_flight for view in views if view.in_flight is not None]
    return ProviderView(
        name=name,
        rows=sum(view.rows for view in views),
        errors=sum(view.errors for view in views),
        in_flight=sum(flying) if flying else None,
        completion_tokens=sum(view.completion_tokens for view in views),
        tokens_per_s=sum(view.tokens_per_s for view in views),
        cost_usd=known_sum(view.cost_usd for view in views),
        profile=_joined(view.profile for view in views),
        prompt_delta=_joined(view.prompt_delta for view in views),
        state=_joined(view.state for view in views),
    )


def _joined(words: Iterable[str]) -> str:
    """What all that know say; where they do not agree, all of it."""
    return " / ".join(dict.fromkeys(word for word in words if word))

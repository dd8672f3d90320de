"""Series of several processes on one time axis: pure, from epoch seconds to epoch seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from engine.view.series import AXIS_BUCKETS
from engine.view.snapshot import FamilySeries, Series


def summed(series: Sequence[Series], until: float) -> Series:
    """Their sum, in buckets as wide as the widest, up to `until` (epoch seconds).

    A bucket in which one was paused counts what the others did; one in which all that were there
    were paused is a gap.
    """
    return _combined(series, until, share=False)


def rates(parts: Sequence[tuple[Series, float]], until: float) -> Series:
    """The sum of (series, present rate) pairs.

    One that has a rate and no series (its status.json holds none) counts in the newest bucket, so
    that the greatest of the series is never below the present rate.
    """
    total = summed([series for series, _ in parts], until)
    unseen = sum(rate for series, rate in parts if not series.values)
    if not unseen:
        return total
    if not total.values:
        return Series(until - 1.0, 1.0, (unseen,))
    return replace(total, values=(*total.values[:-1], (total.values[-1] or 0.0) + unseen))


def counted(series: Sequence[Series], until: float) -> Series:
    """The same for counts in each bucket, which a wider bucket adds up."""
    return _combined(series, until, share=True)


def families(parts: Sequence[Sequence[FamilySeries]], until: float) -> tuple[FamilySeries, ...]:
    """Failed attempts by family, in the order in which the families were first seen."""
    names = dict.fromkeys(each.family for part in parts for each in part)
    return tuple(
        FamilySeries(
            name,
            counted([e.counts for part in parts for e in part if e.family == name], until),
        )
        for name in names
    )


def _combined(series: Sequence[Series], until: float, *, share: bool) -> Series:
    known = [each for each in series if each.values]
    if not known:
        return Series(until, 1.0)
    width = max(each.width for each in known)
    start = min(each.start for each in known)
    buckets = max(0, math.floor((until - start) / width + 1e-6))
    start += max(0, buckets - AXIS_BUCKETS) * width
    columns = [
        _spread(each, start, width, min(buckets, AXIS_BUCKETS), share=share) for each in known
    ]
    return Series(start, width, tuple(_sum(values) for values in zip(*columns, strict=True)))


def _sum(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _spread(
    series: Series, start: float, width: float, buckets: int, *, share: bool
) -> list[float | None]:
    """One series in the buckets of the common axis; None where it has nothing to say.

    Where its buckets are as wide they keep their values and move by half a width at most: sharing
    them out took thirty times as long, with 64 workers a quarter of a second.
    """
    if series.width == width:
        return _shifted(series, round((series.start - start) / width), buckets)
    totals = [0.0] * buckets
    spans = [0.0] * buckets
    edges = [series.start + place * series.width for place in range(len(series.values) + 1)]
    for (begin, end), value in zip(pairwise(edges), series.values, strict=True):
        if value is None:
            continue
        for place in range(
            max(0, math.floor((begin - start) / width)),
            min(buckets, math.ceil((end - start) / width)),
        ):
            low = max(begin, start + place * width)
            span = min(end, start + (place + 1) * width) - low
            if span > 0:
                totals[place] += value * span
                spans[place] += span
    return [
        None if not span else total / (series.width if share else span)
        for total, span in zip(totals, spans, strict=True)
    ]


def _shifted(series: Series, shift: int, buckets: int) -> list[float | None]:
    low = max(0, shift)
    values = series.values[low - shift : max(0, buckets - shift)]
    return [*(None,) * min(low, buckets), *values, *(None,) * (buckets - low - len(values))]

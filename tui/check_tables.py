"""Text tables of a `check` report: columns as wide as their contents, cut to the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.checks.check import Report
from engine.checks.hosts import PER_MILLION, Host
from engine.checks.money import Need, Part
from engine.checks.sources import Scan
from engine.format import UNKNOWN, compact, money, pad, safe_text, thousands, width

_GAP = 2
_NAME_MOST = 26
_ENDS = {
    "prompts": "prompts",
    "token_budget": "token budget",
    "dataset_max_cost_usd": "its max cost",
    "max_cost_usd": "max cost",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how its cells are set.

    In a narrow place columns are left out in the order of `spare` (0: never), then others are cut
    down to `least`.
    """

    head: str
    right: bool = True
    least: int = 0
    spare: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], cells: int) -> list[str]:
    """The heading and the rows, no line wider than `cells`."""
    lines = [[column.head for column in columns], *rows]
    widths = [max(map(width, texts)) for texts in zip(*lines, strict=True)]
    kept = [at for at, size in enumerate(widths) if size]
    for at in sorted((at for at in kept if columns[at].spare), key=lambda at: columns[at].spare):
        if _total(widths, kept) > cells:
            kept.remove(at)
    for at in kept:
        over = _total(widths, kept) - cells
        if over > 0 and columns[at].least:
            widths[at] = max(columns[at].least, widths[at] - over)
    return [
        (" " * _GAP)
        .join(pad(line[at], widths[at], right=columns[at].right) for at in kept)
        .rstrip()
        for line in lines
    ]


def _total(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[at] for at in kept) + _GAP * (len(kept) - 1)


def source_table(report: Report, cells: int) -> list[str]:
    """One line for each dataset: what its source holds."""
    about = "" if all(scan.exact for scan in report.scans) else "~"
    columns = [
        Column("dataset", right=False, least=12),
        Column("prompts"),
        Column("of rows"),
        Column("unread", spare=3),
        Column("doubles", spare=2),
        Column("asked"),
        Column(f"{about}mean tok"),
        Column(f"{about}longest", spare=1),
    ]
    rows = [_source_row(scan) for scan in report.scans]
    if len(rows) > 1:
        rows.append(_source_total(report.scans))
    return table(columns, rows, cells)


def _source_row(scan: Scan) -> list[str]:
    servable = scan.readable - scan.unservable
    held = f"{thousands(scan.held)}{'+' if scan.more else ''}"
    return [
        _name(scan.name),
        thousands(scan.prompts),
        held if not scan.error else UNKNOWN,
        thousands(scan.invalid),
        thousands(scan.doubles + sum(scan.shared.values())),
        thousands(scan.generations),
        thousands(round(scan.tokens.first / servable)) if servable else UNKNOWN,
        thousands(scan.tokens.longest) if servable else UNKNOWN,
    ]


def _source_total(scans: Sequence[Scan]) -> list[str]:
    servable = sum(scan.readable - scan.unservable for scan in scans)
    mean = sum(scan.tokens.first for scan in scans) / servable if servable else None
    return [
        "all",
        thousands(sum(scan.prompts for scan in scans)),
        thousands(sum(scan.held for scan in scans)),
        thousands(sum(scan.invalid for scan in scans)),
        thousands(sum(scan.doubles + sum(scan.shared.values()) for scan in scans)),
        thousands(sum(scan.generations for scan in scans)),
        UNKNOWN if mean is None else thousands(round(mean)),
        thousands(max(scan.tokens.longest for scan in scans)) if servable else UNKNOWN,
    ]


def host_table(report: Report, cells: int) -> list[str]:
    """One line for each host, and below it why it may not answer."""
    columns = [
        Column("host", right=False, least=14),
        Column("provider", right=False, spare=1),
        Column("quant", right=False, spare=4),
        Column("context"),
        Column("output", spare=3),
        Column("$/M in"),
        Column("out"),
        Column("status", spare=2),
        Column("may"),
    ]
    every = len(report.plans)
    rows = [_host_row(host, len(excluded), every) for host, excluded in report.asked.route.hosts]
    head, *lines = table(columns, rows, cells)
    out = [head]
    for line, (_, excluded) in zip(lines, report.asked.route.hosts, strict=True):
        out.append(line)
        out.extend(f"  no: {words}" for words in _reasons(dict(excluded), every))
    return out


def _host_row(host: Host, excluded: int, every: int) -> list[str]:
    may = "yes" if not excluded else "no" if excluded == every else f"{every - excluded}/{every}"
    return [
        safe_text(host.tag, 40) or UNKNOWN,
        safe_text(host.provider, 24) or UNKNOWN,
        safe_text(host.quantization, 10),
        _count(host.context_length),
        _count(host.max_completion_tokens),
        _per_million(host.prompt_usd),
        _per_million(host.completion_usd),
        UNKNOWN if host.status is None else str(host.status),
        may,
    ]


def _reasons(excluded: dict[str, str], every: int) -> list[str]:
    """Each reason once, with the datasets that it concerns where that is not all of them."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in excluded.items():
        by_reason.setdefault(reason, []).append(name)
    return [
        safe_text(reason if len(names) == every else f"{', '.join(names)}: {reason}", 300)
        for reason, names in by_reason.items()
    ]


def estimate_table(report: Report, cells: int) -> list[str]:
    """One line for each dataset: what is left to ask, and what it may come to."""
    reckoned = report.estimate
    columns = [
        Column("dataset", right=False, least=12),
        Column("left"),
        Column("tok each", spare=1),
        Column("tokens"),
        Column("cost"),
        Column("ends by", right=False, least=8),
    ]
    rows = [
        _estimate_row(need, low, high)
        for need, low, high in zip(reckoned.needs, reckoned.low, reckoned.high, strict=True)
    ]
    if len(rows) > 1:
        cost = reckoned.cost_usd
        rows.append(
            [
                "all",
                thousands(sum(need.left for need in reckoned.needs)),
                "",
                _tokens(
                    sum(part.completion_tokens for part in reckoned.low),
                    sum(part.completion_tokens for part in reckoned.high),
                ),
                _dollars(*((None, None) if cost is None else (cost[0], cost[2]))),
                "",
            ]
        )
    return table(columns, rows, cells)


def _estimate_row(need: Need, low: Part, high: Part) -> list[str]:
    if not need.generations:
        return [_name(need.name), *[UNKNOWN] * 5]
    each = need.completion()
    ends = _ENDS[high.ends_by] + ("" if low.ends_by == high.ends_by else " (high)")
    return [
        _name(need.name),
        thousands(need.left),
        f"{'' if need.measured else '~'}{_tokens(each.low, each.high)}",
        _tokens(low.completion_tokens, high.completion_tokens),
        _dollars(low.cost_usd, high.cost_usd),
        ends,
    ]


def _tokens(low: float, high: float) -> str:
    few, many = compact(low), compact(high)
    return few if few == many else f"{few}-{many}"


def _dollars(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return money(None)
    little, much = money(low), money(high)
    return little if little == much else f"{little}-{much.removeprefix('$')}"


def _name(name: str) -> str:
    return safe_text(name, _NAME_MOST)


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else compact(number)


def _per_million(usd: float | None) -> str:
    return UNKNOWN if usd is None else f"{usd * PER_MILLION:.2f}"

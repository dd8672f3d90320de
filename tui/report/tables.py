"""The report's tables: every number beside its dataset's name and the manifest's prompt total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine import format as fmt
from engine.past.tape import Tape
from engine.view.snapshot import DatasetView, ErrorLine, FailureLine, Snapshot
from tui.draw import grades, words
from tui.report import when
from tui.report.chart import histogram
from tui.report.markup import Cell, Child, Element, Outside, el, table

JOURNAL_MOST = 300
_WORDS_MOST, _ERRORS_MOST = 3, 100
_UNKNOWN = "not recorded"


def datasets(last: Snapshot, outside: Outside) -> Element:
    """One line for each dataset, and their sums."""
    heads = (
        *("dataset · manifest's total", "state", "ok", "failed", "invalid", "in flight", "left"),
        *("rows", "failed attempts", "tokens", "cost"),
    )
    rows = [_dataset(view, last, outside) for view in last.datasets]
    return table(heads, [*rows, _sum(last)], numbers="..rrrrrrrrr")


def _dataset(view: DatasetView, last: Snapshot, outside: Outside) -> list[Cell]:
    state = str(words.dataset_state(view, last.state))
    return [
        el("bdi", words.label(view)),
        [state, el("small", outside(view.reason))] if view.reason else state,
        *map(fmt.thousands, (view.ok, view.failed, view.invalid, view.in_flight, view.left)),
        _rows(view),
        _attempts(view),
        _tokens(view),
        fmt.money(view.cost_usd),
    ]


def _rows(view: DatasetView) -> Cell:
    count = fmt.thousands(view.rows)
    if not view.restored_rows:
        return count
    return [count, el("small", f"{fmt.thousands(view.restored_rows)} from earlier sessions")]


def _attempts(view: DatasetView) -> Cell:
    """Failed attempts over all sessions; how many have ended is known of one session only."""
    failed, rate = fmt.thousands(view.attempt_errors), view.attempts
    if not rate.total:
        return failed
    share = f"{fmt.percent(rate.failed, rate.total)} of {fmt.thousands(rate.total)}"
    return [failed, el("small", f"{share} in this session" if view.restored_rows else share)]


def _tokens(view: DatasetView) -> Cell:
    used = fmt.compact(view.completion_tokens)
    if view.token_budget is None:
        return used
    share = fmt.percent(view.completion_tokens, view.token_budget)
    return [f"{used} of {fmt.compact(view.token_budget)}", el("small", f"{share} of the budget")]


def _sum(last: Snapshot) -> list[Cell]:
    views = last.datasets
    fields = ("ok", "failed", "invalid", "in_flight", "left", "rows", "attempt_errors")
    sums = [fmt.thousands(sum(getattr(view, name) for view in views)) for name in fields]
    total = fmt.plural(sum(view.prompts for view in views), "prompt")
    tokens = fmt.compact(sum(view.completion_tokens for view in views))
    name = f"all {len(views)} · {total}"
    return [el("b", text) for text in (name, "", *sums, tokens, fmt.money(last.cost_usd))]


def quality(last: Snapshot, outside: Outside) -> Element:
    """Grades, flags and finish reasons of the rows."""
    heads = (
        "dataset · manifest's total",
        "rows",
        "grades",
        "flags",
        "finish reasons",
        "exportable tokens",
    )
    rows: list[list[Cell]] = []
    for view in last.datasets:
        found = [(grade.name, count) for grade, count in grades.counts(view)]
        reasons = sorted(view.finish_reasons.items(), key=lambda item: -item[1])
        rows.append(
            [
                el("bdi", words.label(view)),
                fmt.thousands(view.rows),
                _listed(found, view.rows),
                _listed(grades.flags(view), view.rows),
                _listed([(outside.text(name, 40), count) for name, count in reasons], view.rows),
                "?" if view.exportable_tokens is None else fmt.compact(view.exportable_tokens),
            ]
        )
    claims = [el("li", el("b", grade.name), f": {grade.claim}") for grade in grades.GRADES]
    return el("div", table(heads, rows, numbers=".r...r"), el("ul", claims, class_="claims"))


def _listed(counts: Iterable[tuple[str, int]], whole: int) -> Cell:
    items = [
        el("div", f"{fmt.thousands(count)} {name} ", el("small", fmt.percent(count, whole)))
        for name, count in counts
        if count
    ]
    return items or "none"


def latencies(last: Snapshot) -> list[Element]:
    """Seconds to the reply, and how long the answers are."""
    heads = ("dataset · manifest's total", "half within", "90% within", "99% within", "mean tokens")
    known = [view for view in last.datasets if view.rows]
    rows: list[list[Cell]] = [
        [
            el("bdi", words.label(view)),
            *(_seconds(s) for s in (view.latency.p50, view.latency.p90, view.latency.p99)),
            _mean(view),
        ]
        for view in known
    ]
    drawn = [_lengths(view) for view in known if view.lengths]
    return [table(heads, rows, numbers=".rrrr"), el("div", drawn, class_="several")]


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return _UNKNOWN
    return f"{seconds:.1f} s" if seconds < 60 else fmt.duration(seconds)  # noqa: PLR2004 - a minute


def _mean(view: DatasetView) -> str:
    mean = view.mean_completion_tokens
    mean = view.completion_tokens / view.rows if mean is None else mean
    return fmt.thousands(round(mean))


def _lengths(view: DatasetView) -> Element:
    bars = [(f"≤{fmt.thousands(bound)}", count) for bound, count in view.lengths]
    caption = f"{words.label(view)}: rows by completion tokens"
    return el("figure", el("figcaption", el("bdi", caption)), histogram(bars, caption))


def providers(last: Snapshot, outside: Outside) -> Child:
    """Who answered."""
    if not last.providers:
        return el("p", f"Providers: {_UNKNOWN}.")
    heads = ("provider", "rows", "failed attempts", "tokens", "cost", "text profile", "state")
    rows: list[list[Cell]] = [
        [
            outside(view.name, 60),
            fmt.thousands(view.rows),
            fmt.thousands(view.errors),
            fmt.compact(view.completion_tokens),
            fmt.money(view.cost_usd),
            outside(" ".join(filter(None, (view.profile, view.prompt_delta))) or "unknown", 60),
            outside(view.state, 60),
        ]
        for view in last.providers
    ]
    return table(heads, rows, numbers=".rrrr..")


def verdicts(last: Snapshot, outside: Outside) -> Child:
    """Every error family of each dataset with its verdict and what it stands on."""
    found = [(view, line) for view in last.datasets for line in words.worst_first(view.errors)]
    if not found:
        return el("p", "No attempt has failed.")
    heads = ("dataset · manifest's total", "family, provider", "verdict", "attempts", "evidence")
    rows = [_verdict(view, line, outside) for view, line in found[:_ERRORS_MOST]]
    rest = len(found) - _ERRORS_MOST
    more = el("p", f"{fmt.plural(rest, 'more cause')} not shown.") if rest > 0 else None
    return [table(heads, rows, numbers="...r."), more]


def _verdict(view: DatasetView, line: ErrorLine, outside: Outside) -> list[Cell]:
    word = (line.verdict or "counted").lower()
    evidence: list[Child] = [outside(line.evidence)]
    if line.action:
        evidence.append(el("div", el("small", "do: "), outside(line.action)))
    if line.words:
        evidence.append(el("div", el("small", "server: "), outside(line.words)))
    span = f"{when.stamp(line.first_at)} to {when.stamp(line.last_at)}"
    return [
        el("bdi", words.label(view)),
        outside(words.cause(line), 80),
        el("span", line.verdict or "counted", class_=f"verdict {word}"),
        fmt.thousands(line.count),
        [*evidence, el("small", span)],
    ]


def failures(tape: Tape, last: Snapshot, outside: Outside) -> Child:
    """Prompts given up, by family, with what the servers said."""
    heads = (
        "dataset · manifest's total",
        "family",
        "prompts given up",
        "the servers' words",
        "last",
    )
    rows: list[list[Cell]] = []
    for view in last.datasets:
        families: dict[str, list[FailureLine]] = {}
        for line in tape.failures.get(view.name, ()):
            families.setdefault(line.family, []).append(line)
        for family, lines in sorted(families.items(), key=lambda item: -len(item[1])):
            said = Counter(line.message for line in lines).most_common(_WORDS_MOST)
            quoted = [el("div", outside(text), f" ({count})") for text, count in said]
            count, newest = fmt.thousands(len(lines)), when.stamp(lines[-1].at)
            rows.append([el("bdi", words.label(view)), outside(family, 40), count, quoted, newest])
    if not rows:
        return el("p", "No prompt has been given up.")
    note = "From failures.jsonl: later sessions may have answered some of them since."
    return [table(heads, rows, numbers="..r.."), el("p", note, class_="note")]


def sessions(tape: Tape, outside: Outside) -> Element:
    """Each process that worked on the run."""
    heads = ("session", "process", "from", "to", "lasted", "rows written", "ended")
    rows = [_session(tape, number + 1, outside) for number in range(len(tape.sessions))]
    return table(heads, rows, numbers="r...rr.")


def _session(tape: Tape, number: int, outside: Outside) -> list[Cell]:
    session, last = tape.sessions[number - 1], len(tape.sessions)
    first, final = session.snapshot(0), session.snapshot(len(session) - 1)
    before = sum(view.restored_rows for view in final.datasets)
    rows = sum(view.rows for view in final.datasets) - before
    return [
        str(number),
        outside(f"{session.pid} on {session.host}", 80),
        when.stamp(first.started_at),
        when.stamp(session.end),
        fmt.duration(session.end - first.started_at),
        fmt.thousands(max(0, rows)),
        outside(_ending(final, live=tape.live and number == last)),
    ]


def _ending(final: Snapshot, *, live: bool) -> str:
    reason = f": {final.reason}" if final.reason else ""
    if final.exit_code is not None:
        return f"{final.state}, exit {final.exit_code}: {words.ending(final)}{reason}"
    if live:
        return f"under way ({final.state}{reason})"
    return f"without a word while {final.state}: its process was killed or lost{reason}"


def journal(tape: Tape, outside: Outside) -> list[Child]:
    """The newest entries, and how many are not shown."""
    shown = tape.journal[-JOURNAL_MOST:]
    rest = len(tape.journal) - len(shown)
    rows: list[list[Cell]] = [
        [
            when.stamp(entry.at),
            outside(entry.kind, 20),
            outside(entry.dataset or "", 60),
            outside(entry.text),
        ]
        for entry in reversed(shown)
    ]
    note = f"The newest {len(shown)} of {fmt.plural(len(tape.journal), 'entry', 'entries')}"
    earlier = f"; {fmt.thousands(rest)} earlier ones are in events.jsonl" if rest else ""
    return [
        el("p", f"{note}, newest first{earlier}.", class_="note"),
        table(("when", "kind", "dataset", "what"), rows),
    ]

"""The whole report: title, summary, and its sections in the order in which a reader asks."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine import format as fmt
from engine.past.tape import Tape, with_end
from engine.view.snapshot import Snapshot
from tui.draw import words
from tui.report import markup, tables, when
from tui.report.figures import Figures
from tui.report.markup import Cell, Child, Element, Outside, el, table

GENERATOR = "eaglegen-tui report"
"""What a report of ours says of itself in its head: such a file may be replaced."""
_STYLE = Path(__file__).with_name("style.css")
_SHOWN = ("temperature", "top_p", "max_tokens", "seed")


def render(tape: Tape, made_at: float, outside: Outside) -> bytes:
    """The page about a tape; `made_at` in epoch seconds."""
    last = with_end(tape.last, live=tape.live)
    name = outside.text(last.run, 120)
    head = [
        el("meta", charset="utf-8"),
        el("meta", name="generator", content=GENERATOR),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{name} · eaglegen-tui report"),
        el("style", _STYLE.read_text(encoding="utf-8")),
    ]
    body = [
        _header(tape, last, made_at, outside),
        _main(tape, last, outside),
        _footer(tape, made_at),
    ]
    return markup.page(head, body, outside)


def _header(tape: Tape, last: Snapshot, made_at: float, outside: Outside) -> Element:
    word = words.run_state(last)
    total = sum(view.prompts for view in last.datasets)
    finished = sum(words.done(view) for view in last.datasets)
    unended = _unended(tape, last, outside)
    how = words.ending(last) if last.exit_code is not None else unended
    share = fmt.percent(finished, total)
    many = fmt.plural(len(last.datasets), "dataset")
    said = [
        f"{fmt.plural(total, 'prompt')} in {many}: {fmt.thousands(finished)} finished, {share}",
        f"{fmt.thousands(sum(view.rows for view in last.datasets))} rows",
        _money(last),
    ]
    state = el("p", el("strong", str(word), class_=f"state {word.role}"), f" {how}", class_="lead")
    return el(
        "header",
        el("h1", outside(last.run, 120)),
        state,
        el("p", " · ".join(said)),
        _facts(tape, last, made_at, outside),
    )


def _unended(tape: Tape, last: Snapshot, outside: Outside) -> str:
    if tape.live:
        return (
            f"under way when this page was made; newest numbers of {when.stamp(last.heartbeat_at)}"
        )
    return outside.text(last.reason)


def _money(last: Snapshot) -> str:
    text = f"cost {fmt.money(last.cost_usd)}"
    if last.max_cost_usd is not None:
        text += f" of {fmt.money(last.max_cost_usd)}"
    if last.cost_unknown_attempts:
        text += f" and {fmt.plural(last.cost_unknown_attempts, 'request')} of unknown cost"
    if last.twice_attempts:
        text += f"; up to about {fmt.money(last.twice_usd)} may be paid twice"
    return text


def _facts(tape: Tape, last: Snapshot, made_at: float, outside: Outside) -> Element:
    first = tape.sessions[0]
    begin = first.snapshot(0).started_at
    endpoint = _section(tape, "manifest", "endpoint")
    facts: list[tuple[str, Child]] = [
        ("model", outside(last.model, 120)),
        ("endpoint", outside(host_of(endpoint.get("base_url") or last.endpoint), 120)),
        ("tokenizer", outside(str(endpoint.get("tokenizer", "?")), 80)),
        ("sampling", outside(_sampling(tape), 160)),
        ("host", outside(", ".join(dict.fromkeys(s.host for s in tape.sessions)), 120)),
        ("run directory", outside(str(tape.folder.resolve()), 300)),
        (
            "time",
            f"{when.stamp(begin)} to {when.stamp(tape.sessions[-1].end)} {when.zone(made_at)}",
        ),
        ("sessions", fmt.thousands(len(tape.sessions))),
        ("expected", _expected(last)),
    ]
    return el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts])


def _expected(last: Snapshot) -> str:
    """What `check` would have said as the last session began."""
    found = last.forecast
    if found is None:
        return "not recorded"
    times = f"{fmt.duration(found.seconds_low)} to {fmt.duration(found.seconds_high)}"
    if found.usd_low is None:
        return f"{times} for the last session"
    prices = f"{fmt.money(found.usd_low)} to {fmt.money(found.usd_high)}"
    return f"{prices} in all, {times} for the last session"


def _section(tape: Tape, *path: str) -> dict[str, Any]:
    found: Any = tape.run
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _sampling(tape: Tape) -> str:
    sampling = _section(tape, "manifest", "sampling")
    known = [f"{name} {sampling[name]}" for name in _SHOWN if sampling.get(name) is not None]
    return ", ".join(known) or "as the server has it"


def host_of(url: Any) -> str:
    """The address without what may be a secret: no user, no query."""
    try:
        parts = urlsplit(str(url))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "?"
    return f"{parts.scheme}://{parts.hostname or '?'}{port}{parts.path}"


def _main(tape: Tape, last: Snapshot, outside: Outside) -> Element:
    figures = Figures(tape, last, outside)
    return el(
        "main",
        _part("Datasets", tables.datasets(last, outside)),
        _part("Throughput", figures.throughput(), figures.limit()),
        _part("Errors", figures.errors(), tables.verdicts(last, outside)),
        _part("Prompts given up", tables.failures(tape, last, outside)),
        _part("Cost", figures.cost()),
        _part("Rows: grades and flags", tables.quality(last, outside)),
        _part("Latency and length", tables.latencies(last)),
        _part("Providers", tables.providers(last, outside)),
        _part("Sessions", tables.sessions(tape, outside)),
        _part("Journal", tables.journal(tape, outside)),
    )


def _part(title: str, *content: Child) -> Element:
    return el("section", el("h2", title), content)


def _footer(tape: Tape, made_at: float) -> Element:
    rows: list[list[Cell]] = [
        [fmt.safe_text(name), fmt.thousands(count)] for name, count in tape.odd.items()
    ]
    odd = [
        el("p", "Lines left out because they could not be read:"),
        table(("file", "lines"), rows),
    ]
    zone = when.zone(made_at)
    made = (
        f"Made {when.stamp(made_at)} by eaglegen-tui {_version()}. Times are {zone}, the time of "
        "the machine that made this page; times inside sentences are those of the run's host. "
        "A prompt is counted once; failed attempts are requests, most of which were retried."
    )
    return el("footer", odd if rows else None, el("p", made))


def _version() -> str:
    try:
        return version("eaglegen-tui")
    except PackageNotFoundError:
        return "(not installed)"

"""Tables of a dataset's particulars: providers, slowest in flight, newest rows and failures."""

from __future__ import annotations

from engine import format as fmt
from engine.clock import local_hms
from engine.view.snapshot import DatasetView, ProviderView, Snapshot
from tui import glyphs
from tui.draw import words
from tui.draw.paint import Line, Span, exactly
from tui.draw.table import Column, head, table


def providers(snapshot: Snapshot, cells: int, chosen: str | None = None) -> list[Line]:
    """Every provider over the whole run, with how it distorts text."""
    if not snapshot.providers:
        return []
    columns = (
        Column("", rank=0),
        Column("provider"),
        Column("requests", right=True, rank=1),
        Column("errors", right=True),
        Column("state" if any(view.state for view in snapshot.providers) else ""),
        Column("tok/s", right=True, rank=2),
        Column("cost", right=True, rank=2),
        Column("profile", rank=3),
        Column("notes", rank=4, grow=True),
    )
    rows = [
        (
            Span(glyphs.CURSOR if view.name == chosen else " ", "accent", bold=True),
            Span(fmt.safe_text(view.name, 20)),
            Span(fmt.thousands(view.rows + view.errors)),
            Span(fmt.thousands(view.errors), "warn" if view.errors else "dim"),
            Span(_state(view)[0], "warn"),
            Span(fmt.compact(view.tokens_per_s)),
            Span(fmt.money(view.cost_usd)),
            Span(fmt.safe_text(view.profile, 12) or "?", "dim"),
            Span(_state(view)[1], "warn"),
        )
        for view in snapshot.providers
    ]
    return [exactly(head("Providers", "over the whole run"), cells), *table(columns, rows, cells)]


def _state(view: ProviderView) -> tuple[str, str]:
    """The provider's state in few words, and why with what else is to be noted of it."""
    head, _, why = view.state.partition(": ")
    notes = "  ".join(filter(None, (why, view.prompt_delta)))
    return fmt.safe_text(head.replace("resting until", "rests to"), 20), fmt.safe_text(notes)


def slowest(view: DatasetView, cells: int) -> list[Line]:
    """The oldest requests in flight."""
    if not view.slowest:
        return []
    columns = (
        Column("age", right=True),
        Column("attempt", right=True),
        Column("id", grow=True),
    )
    rows = [
        (
            Span(fmt.duration(flying.age_s)),
            Span(str(flying.attempt)),
            Span(fmt.safe_text(flying.id), "dim"),
        )
        for flying in view.slowest[:8]
    ]
    shown = f"the oldest of {fmt.thousands(view.in_flight)} in flight"
    return [exactly(head("Slowest", shown), cells), *table(columns, rows, cells)]


def last_rows(view: DatasetView, cells: int) -> list[Line]:
    """The newest rows; enter opens them."""
    if not view.last_rows:
        return []
    columns = (
        Column("at"),
        Column("tokens", right=True),
        Column("latency", right=True, rank=3),
        Column("grade"),
        Column("flags", rank=2),
        Column("provider", rank=4),
        Column("answer", grow=True, rank=1),
    )
    rows = [
        (
            Span(local_hms(row.at), "dim"),
            Span("?" if row.tokens is None else fmt.thousands(row.tokens)),
            Span(words.seconds(row.latency_s)),
            Span(fmt.safe_text(row.grade, 12), "warn" if row.grade == "mismatch" else "text"),
            Span(fmt.safe_text(" ".join(row.flags), 20), "warn"),
            Span(fmt.safe_text(row.provider or "?", 14), "dim"),
            Span(fmt.safe_text(row.text), "dim"),
        )
        for row in view.last_rows
    ]
    return [exactly(head("Last rows", "enter reads them"), cells), *table(columns, rows, cells)]


def failures(view: DatasetView, cells: int) -> list[Line]:
    """Prompts given up, of the manifest's total, with the server's words."""
    if not view.failed and not view.last_failures:
        return []
    total = f"{fmt.thousands(view.failed)} of {fmt.plural(view.prompts, 'prompt')}, newest first"
    columns = (
        Column("at"),
        Column("tries", right=True, rank=3),
        Column("family"),
        Column("the server's words", grow=True),
        Column("id", rank=5),
    )
    rows = [
        (
            Span(local_hms(line.at), "dim"),
            Span(str(line.attempts)),
            Span(fmt.safe_text(line.family, 20)),
            Span(fmt.safe_text(line.message), "dim"),
            Span(fmt.safe_text(line.id.rpartition("/")[2], 22), "dim"),
        )
        for line in view.last_failures
    ]
    return [exactly(head("Given up", total), cells), *table(columns, rows, cells)]

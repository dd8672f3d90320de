"""What a source's scan means for its dataset, as findings."""

from __future__ import annotations

from collections.abc import Iterator

from engine.checks.findings import SENTENCE, Finding, fail, ok, warn
from engine.checks.pilot import Pilot
from engine.checks.sources import Scan, Window
from engine.format import percent, plural, safe_text, thousands
from engine.manifest import Dataset

_CUT_SHARE = 0.05
"""Rows cut at max_tokens that are worth a word."""


def row_findings(
    scan: Scan, dataset: Dataset, window: Window, pilot: Pilot, *, allow_short: bool
) -> Iterator[Finding]:
    """Everything to be said of one dataset's source."""
    if scan.error:
        yield _unread(scan)
        if not scan.rows:
            return
    else:
        yield _held(scan, allow_short=allow_short)
    yield from _unreadable(scan)
    yield from _unservable(scan)
    yield from _tool_rows(scan, dataset)
    yield from _doubles(scan)
    yield from _too_long(scan, window)
    yield from _on_disk(scan, pilot)


def _unread(scan: Scan) -> Finding:
    hub = scan.source.startswith("hf:") and not scan.hint and not scan.held
    make = warn if hub and scan.error.endswith("--offline") else fail
    return make("sources", "source", safe_text(scan.error, SENTENCE), scan.hint, dataset=scan.name)


def _held(scan: Scan, *, allow_short: bool) -> Finding:
    held, name = thousands(scan.held), scan.name
    if scan.held < scan.prompts:
        text = f"the manifest asks for {plural(scan.prompts, 'prompt')}, the source holds {held}"
        if allow_short:
            return warn("sources", "rows", f"{text}: its total is {held}", dataset=name)
        fix = "Correct `prompts`, or use --allow-short to take what is there."
        return fail("sources", "rows", text, fix, dataset=name)
    text = f"{thousands(scan.prompts)} of {held}{' or more' if scan.more else ''} rows"
    if scan.held > scan.prompts:
        left_out = "" if scan.more else f" {thousands(scan.held - scan.prompts)}"
        text += f"; the last{left_out} are left out"
    if scan.rows < scan.prompts:
        text += f"; looked at the first {thousands(scan.rows)}"
    return ok("sources", "rows", text, dataset=name)


def _unreadable(scan: Scan) -> Iterator[Finding]:
    if not scan.invalid:
        return
    first = "; ".join(
        f"line {row.line}: {safe_text(row.reason, SENTENCE)}" for row in scan.invalid_first
    )
    more = scan.invalid - len(scan.invalid_first)
    tail = f"; and {thousands(more)} more" if more else ""
    text = f"{plural(scan.invalid, 'row')} of {thousands(scan.rows)} unreadable: {first}{tail}"
    if scan.readable == 0:
        fix = "See the manifest's accepted row forms: messages, conversations, prompt, turns ..."
        yield fail("sources", "unreadable", text, fix, dataset=scan.name)
    else:
        fix = "They count as invalid and stop nothing; mend them, and run again."
        yield warn("sources", "unreadable", text, fix, dataset=scan.name)


def _unservable(scan: Scan) -> Iterator[Finding]:
    if scan.unservable:
        first = "; ".join(
            f"index {index}: {safe_text(reason, SENTENCE)}"
            for index, reason in scan.unservable_first
        )
        text = f"{plural(scan.unservable, 'prompt')} cannot be put into the model's template: "
        fix = "Their rows would carry no prompt ids; take them out of the source."
        yield warn("sources", "unservable", text + first, fix, dataset=scan.name)


def _tool_rows(scan: Scan, dataset: Dataset) -> Iterator[Finding]:
    if scan.tool_rows and dataset.turns != "last":
        text = f"{plural(scan.tool_rows, 'row')} with tool messages: done as `last`"
        fix = "Their tool results belong to the source's own calls; nothing to do."
        yield warn("sources", "tool_messages", text, fix, dataset=scan.name)


def _doubles(scan: Scan) -> Iterator[Finding]:
    fix = "Each is asked and paid for by itself; take them out if one sample is enough."
    if scan.doubles:
        text = f"{plural(scan.doubles, 'exact double')} of a prompt earlier in the file"
        yield warn("sources", "doubles", text, fix, dataset=scan.name)
    if scan.shared:
        words = ", ".join(f"{thousands(n)} in {name}" for name, n in scan.shared.items())
        text = f"{plural(sum(scan.shared.values()), 'prompt')} also in earlier datasets: {words}"
        yield warn("sources", "shared", text, fix, dataset=scan.name)


def _too_long(scan: Scan, window: Window) -> Iterator[Finding]:
    tokens, name = scan.tokens, scan.name
    cap = f" beside max_tokens {window.max_tokens:,}" if window.max_tokens else ""
    about = "" if scan.exact else " (by an estimate of their tokens)"
    if tokens.over_all:
        text = (
            f"{thousands(tokens.over_all)} of {plural(scan.readable, 'prompt')} too long for the "
            f"context of {window.largest or 0:,}{cap}{about}"
        )
        fix = "Lower max_tokens, or take them out of the source."
        if tokens.over_all == scan.readable:
            yield fail("endpoint", "context", text, fix, dataset=name)
        else:
            yield warn("sources", "context", text, fix, dataset=name)
    if tokens.over_some:
        text = (
            f"{plural(tokens.over_some, 'prompt')} too long for some of the hosts (the smallest "
            f"context is {window.smallest or 0:,}){cap}{about}"
        )
        yield warn(
            "sources", "context", text, "Leave out the hosts of small context.", dataset=name
        )


def _on_disk(scan: Scan, pilot: Pilot) -> Iterator[Finding]:
    rows = pilot.ledger.rows
    if scan.orphans:
        text = f"{plural(scan.orphans, 'prompt')} with rows on disk are not in the source any more"
        fix = "Their rows stay where they are."
        yield warn("sources", "orphans", text, fix, dataset=scan.name)
    if pilot.enough and pilot.cut > rows * _CUT_SHARE:
        text = (
            f"{percent(pilot.cut, rows)} of the {thousands(rows)} rows on disk were cut by length"
        )
        fix = 'Raise max_tokens, or set on_length = "retry".'
        yield warn("estimate", "cut", text, fix, dataset=scan.name)

"""`eaglegen-tui check`: prints what can be known before spending, failures last."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.checks.budget import assumptions
from engine.checks.check import Report, check
from engine.checks.findings import Finding, Level
from engine.checks.record import report_record
from engine.checks.tokens import Served
from engine.clock import SystemClock
from engine.disk.jsonlines import dump_line
from engine.format import char_width, plural, safe_text, width
from engine.manifest import load_manifest
from engine.plan import Options
from engine.settings import load_settings
from tui.check_tables import estimate_table, host_table, source_table

_PLAIN_CELLS = 80
_LEAST_CELLS = 40
_MOST_CELLS = 120
"""Sentences wider than this are hard to read, however wide the terminal is."""
_SLICE = 1500
"""Characters that `safe_text` is given at a time; it looks at no more than 2000."""
_COLOURS = {Level.OK: "32", Level.WARN: "33", Level.FAIL: "31"}


def run_check(path: Path, options: Options, *, offline: bool, as_json: bool, show: int) -> int:
    """Check a manifest and print the report on stdout; returns the exit code."""
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    manifest = load_manifest(path)
    settings = load_settings(path.parent, Path.cwd())
    report = check(
        manifest, options, settings, now=SystemClock().wall(), offline=offline, show=show
    )
    if as_json:
        sys.stdout.buffer.write(dump_line(report_record(report, shown=show > 0)))
        return int(report.exit_code)
    on_terminal = sys.stdout.isatty()
    cells = max(_LEAST_CELLS, shutil.get_terminal_size().columns if on_terminal else _PLAIN_CELLS)
    colour = on_terminal and "NO_COLOR" not in os.environ
    text = "\n".join(report_lines(report, cells, colour=colour)) + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    return int(report.exit_code)


def report_lines(report: Report, cells: int, *, colour: bool = False) -> Iterator[str]:
    """The whole report: prompts as served, tables, findings with the gravest last."""
    for scan in report.scans:
        for served in scan.shown:
            yield from _served(served, cells)
    yield from _head(report, cells)
    yield ""
    yield "Sources"
    yield from _indented(source_table(report, cells - 2))
    if report.asked.route.hosts:
        yield ""
        yield f"Hosts of {safe_text(report.manifest.endpoint.model)}"
        yield from _wrapped_table(host_table(report, cells - 2), cells)
    yield ""
    yield "Estimate, low to high"
    yield from _indented(estimate_table(report, cells - 2))
    for sentence in assumptions(report.estimate):
        yield from _wrap(sentence, cells, "  ", "  ")
    yield from _findings(report.findings, cells, colour=colour)
    yield ""
    yield _verdict(report)


def _head(report: Report, cells: int) -> Iterator[str]:
    endpoint = report.manifest.endpoint
    run, model = safe_text(report.manifest.run.name), safe_text(endpoint.model)
    yield from _wrap(f"{run}: {model} at {safe_text(endpoint.base_url)}", cells, "", "  ")
    yield from _wrap(f"run directory {safe_text(str(report.folder))}", cells, "", "  ")


def _findings(findings: tuple[Finding, ...], cells: int, *, colour: bool) -> Iterator[str]:
    for level in (Level.OK, Level.WARN, Level.FAIL):
        mine = [finding for finding in findings if finding.level is level]
        if mine:
            yield ""
        for finding in mine:
            yield from _finding(finding, cells, colour=colour)


def _finding(finding: Finding, cells: int, *, colour: bool) -> Iterator[str]:
    word = finding.level.value if finding.level is not Level.FAIL else "FAIL"
    name = f"{finding.dataset}: " if finding.dataset else ""
    text = safe_text(f"{name}{finding.text}")
    lines = _wrap(text, cells, f"{word:<4}  ", " " * 6)
    if finding.fix and finding.level is not Level.OK:
        lines += _wrap(safe_text(finding.fix), cells, "      -> ", " " * 9)
    if colour:
        painted = f"\x1b[{_COLOURS[finding.level]}m{word}\x1b[0m"
        lines[0] = painted + lines[0].removeprefix(word)
    yield from lines


def _verdict(report: Report) -> str:
    count = {level: sum(f.level is level for f in report.findings) for level in Level}
    parts = [
        plural(count[Level.FAIL], "failure"),
        plural(count[Level.WARN], "warning"),
        f"{count[Level.OK]} ok",
    ]
    ending = "nothing was sent" if report.offline else "nothing was spent"
    return f"{', '.join(parts)}; {ending}."


def _served(served: Served, cells: int) -> Iterator[str]:
    """A prompt as the model gets it, its lines kept, harmless on a terminal."""
    exact = "" if served.prompt_ids is not None else "about "
    yield from _wrap(f"{served.id} · {exact}{plural(served.tokens, 'token')}", cells, "", "  ")
    text = served.prompt_text
    if text is None:
        text = "\n".join(f"[{m['role']}] {m.get('content') or ''}" for m in served.messages)
    for line in text.split("\n"):
        yield from (f"  | {part}" for part in _broken(_safe(line), cells - 4))
    yield ""


def _safe(text: str) -> str:
    """Harmless on a terminal, at any length."""
    return "".join(safe_text(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))


def _broken(text: str, cells: int) -> Iterator[str]:
    """Safe text in pieces of at most `cells`; an empty text is one empty piece."""
    start, used = 0, 0
    for at, char in enumerate(text):
        size = char_width(char)
        if used + size > cells:
            yield text[start:at]
            start, used = at, 0
        used += size
    yield text[start:]


def _wrap(text: str, cells: int, first: str, rest: str) -> list[str]:
    """Safe text in lines of whole words; by cells and not by characters, as textwrap would."""
    cells = min(cells, _MOST_CELLS)
    lines, line = [], first
    room = cells - len(rest)
    for word in (piece for part in text.split() for piece in _broken(part, room)):
        gap = "" if line in {first, rest} else " "
        if gap and width(line) + len(gap) + width(word) > cells:
            lines.append(line)
            line, gap = rest, ""
        line += gap + word
    return [*lines, line]


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _wrapped_table(lines: list[str], cells: int) -> Iterator[str]:
    """Table lines fit by themselves; what is said below one of them may not."""
    for line in lines:
        if line.startswith("  no: "):
            yield from _wrap(line.strip(), cells, "    ", " " * 8)
        else:
            yield f"  {line}"

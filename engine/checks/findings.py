"""What `check` found, as data: a record for each finding, and what they mean for the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from engine.errors import ExitCode


class Level(StrEnum):
    """How a finding stands in the way of a run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


Area = Literal["manifest", "sources", "endpoint", "estimate"]
SENTENCE = 300
"""Characters kept of words from outside (a server's message, a reader's complaint)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `topic` is its name for scripts, `fix` what to do about it."""

    level: Level
    area: Area
    topic: str
    text: str
    fix: str = ""
    dataset: str | None = None


def ok(area: Area, topic: str, text: str, *, dataset: str | None = None) -> Finding:
    """It is as it should be."""
    return Finding(Level.OK, area, topic, text, dataset=dataset)


def warn(
    area: Area, topic: str, text: str, fix: str = "", *, dataset: str | None = None
) -> Finding:
    """The run would start, and something about it is worth knowing first."""
    return Finding(Level.WARN, area, topic, text, fix, dataset)


def fail(
    area: Area, topic: str, text: str, fix: str = "", *, dataset: str | None = None
) -> Finding:
    """The run, or a whole dataset of it, would fail."""
    return Finding(Level.FAIL, area, topic, text, fix, dataset)


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    """0 where nothing fails, 2 for manifest and sources, 4 for the endpoint.

    Where both fail it is 2, because `run` would end with that before it sends anything.
    """
    failed = {finding.area for finding in findings if finding.level is Level.FAIL}
    if failed & {"manifest", "sources", "estimate"}:
        return ExitCode.USAGE
    return ExitCode.ENDPOINT if failed else ExitCode.OK

"""`check` in this process, on a folder with real sources, against a provider on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from e2e_desk import SHARED, Desk
from pydantic import SecretStr

from engine.checks.check import Report, check
from engine.checks.findings import Finding, Level
from engine.manifest import load_manifest
from engine.plan import Options
from engine.settings import Settings

NOW = 1_796_000_000.0
"""2026-11-30: when these tests take place."""
KIMI = {"tokenizer": "kimi-k2.5"}
PROMPTS = SHARED / "prompts"


def settings(key: str | None = None) -> Settings:
    """Settings of their own, whatever stands in this machine's environment."""
    return Settings.model_construct(
        api_key=None if key is None else SecretStr(key),
        openrouter_api_key=None,
        cache_dir=None,
        tokenizer_path=None,
    )


def look(
    manifest: Path, *, key: str | None = None, offline: bool = False, show: int = 0, **options: Any
) -> Report:
    """Check a manifest."""
    return check(
        load_manifest(manifest),
        Options(**options),
        settings(key),
        now=NOW,
        offline=offline,
        show=show,
    )


def of(report: Report, topic: str, dataset: str | None = None) -> list[Finding]:
    """The findings about one thing."""
    found = [finding for finding in report.findings if finding.topic == topic]
    return [f for f in found if dataset is None or f.dataset == dataset]


def one(report: Report, topic: str, dataset: str | None = None) -> Finding:
    """The only finding about it."""
    (finding,) = of(report, topic, dataset)
    return finding


def failures(report: Report) -> list[str]:
    """Topics of what fails."""
    return [finding.topic for finding in report.findings if finding.level is Level.FAIL]


def sources(folder: Path, *sets: tuple[str, list[Any]], **sections: dict[str, Any]) -> Path:
    """A manifest over these sets of rows; each is asked for in full."""
    desk = Desk(folder)
    return desk.manifest(
        *(
            {"name": name, "source": desk.source(f"{name}.jsonl", rows), "prompts": len(rows)}
            for name, rows in sets
        ),
        **sections,
    )

"""The real engine in a thread of this process: `with working(desk) as run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from e2e_desk import Desk
from e2e_files import RunFiles

from engine.commands import Stop
from engine.manifest import load_manifest
from engine.plan import Options, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings
from engine.view.snapshot import Snapshot

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a session ended."""

    code: int
    last: Snapshot
    files: RunFiles

    def counts(self, dataset: int = 0) -> tuple[int, int, int]:
        """Prompts ok, failed and left of a dataset."""
        view = self.last.datasets[dataset]
        return view.ok, view.failed, view.left


@contextmanager
def working(desk: Desk, *, key: str | None = None, **options: Any) -> Iterator[EngineThread]:
    """A session that is stopped at the end of the context, if it has not ended by then."""
    plan = make_plan(load_manifest(desk.folder / "manifest.toml"), Options(**options))
    run = EngineThread(plan, key=key, reader=reader_for(plan.manifest, Settings()), seed=1)
    run.start()
    try:
        yield run
    finally:
        if not run.ended:
            run.send(Stop())
        assert run.join(PATIENCE_S), "the engine does not end"


def ending(run: EngineThread, desk: Desk, *, patience_s: float = PATIENCE_S) -> Outcome:
    """Wait for a session to end by itself; a fault of ours is raised here."""
    assert run.join(patience_s), f"still {run.snapshot().state}: {run.snapshot().reason}"
    if run.exit_code == 1 and run.error is not None:
        raise run.error
    return Outcome(run.exit_code, run.snapshot(), desk.files)


def engine_on(desk: Desk, *, patience_s: float = PATIENCE_S, **options: Any) -> Outcome:
    """Run a desk's manifest to its end."""
    with working(desk, **options) as run:
        return ending(run, desk, patience_s=patience_s)

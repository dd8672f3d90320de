"""Plays the faults of the local provider through the real engine, each suffered by one prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_desk import Desk
from e2e_provider import playing
from money_engine import Outcome, engine_on
from money_faults import ATTEMPT, PROMPT, PROVIDER, ROWS

from engine.simulator import Simulator

TAGS = ["siliconflow/int4", "atlas-cloud/int4", "novita"]
ENDPOINT: dict[str, Any] = {"tokenizer": "none", "provider": {"only": TAGS}}
LIMITS: dict[str, Any] = {"concurrency": 64, "max_attempts": 2, "request_timeout_s": 1}
LASTING = [*PROMPT, *PROVIDER, *ATTEMPT, *ROWS]
"""Faults after which the prompt is given up, or is a row: they can be played at every attempt."""
GOOD_EACH = 3
"""Good prompts beside each bad one: the hosts are not broken, and no breaker may think so."""


@dataclass(frozen=True)
class Played:
    """A session in which each fault was suffered by one prompt."""

    outcome: Outcome
    provider: Simulator
    names: dict[str, str]
    """Row id: the fault that its prompt suffers."""

    def of(self, kind: str) -> dict[str, list[dict[str, Any]]]:
        """Records of rows, attempts or failures by fault; those of good prompts under ''."""
        found = defaultdict(list)
        for record in self.outcome.files.all(kind):
            found[self.names.get(record["id"], "")].append(record)
        return found

    @property
    def requests(self) -> int:
        """Requests on record: rows and attempts."""
        return len(self.outcome.files.all("rows")) + len(self.outcome.files.all("attempts"))


def lay(desk: Desk, names: list[str], *, good: int = 0, times: str = "", **limits: Any) -> None:
    """One dataset with a prompt for each fault, and good prompts among them."""
    rows = []
    for name in names:
        rows.append({"prompt": f"[[sim:{name}{times}]] Question", "id": name})
        rows += [{"prompt": f"Good question {n} beside {name}"} for n in range(good)]
    source = desk.source("a.jsonl", rows)
    desk.manifest(
        {"name": "A", "source": source, "prompts": len(rows)},
        endpoint=ENDPOINT,
        limits={**LIMITS, **limits},
    )


@contextmanager
def lasting(folder: Path) -> Iterator[Played]:
    """All faults of prompts, hosts and the network in one run, each at every attempt."""
    weather = {"generation_delay_s": 0.2, "retry_hint": "metadata", "retry_after_s": 0.1}
    with playing(**weather) as provider, Desk(folder, provider.base_url) as desk:
        lay(desk, LASTING, good=GOOD_EACH)
        yield _played(provider, engine_on(desk), LASTING, GOOD_EACH)


@contextmanager
def passing(folder: Path, names: list[str], **scenario: Any) -> Iterator[Played]:
    """Faults that pass: each is suffered once, and then the prompt is answered."""
    with playing(**scenario) as provider, Desk(folder, provider.base_url) as desk:
        lay(desk, names, good=4, times="*1", max_attempts=1)
        yield _played(provider, engine_on(desk, patience_s=150), names, 4)


@contextmanager
def ending_with(folder: Path, name: str) -> Iterator[tuple[Played, Desk]]:
    """A fault that ends the run, suffered once by the first of three prompts."""
    with playing() as provider, Desk(folder, provider.base_url) as desk:
        lay(desk, [name], good=2, times="*1", concurrency=1)
        yield _played(provider, engine_on(desk), [name], 2), desk


def _played(provider: Simulator, outcome: Outcome, names: list[str], good: int) -> Played:
    places = {place * (good + 1): name for place, name in enumerate(names)}
    first = {r["id"]: r for kind in ("rows", "failures") for r in outcome.files.all(kind)}
    known = {i: places[r["index"]] for i, r in first.items() if r["index"] in places}
    return Played(outcome, provider, known)

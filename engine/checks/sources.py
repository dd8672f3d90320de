"""Read every source once, in constant memory per row, and count what a run would meet in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.checks.pilot import Pilot
from engine.checks.tokens import Measure, PromptCounter, Served
from engine.errors import SourceError
from engine.feed.prompts import InvalidRow, Prompt
from engine.feed.sources import PromptFeed, count_rows
from engine.feed.unmet import Unmet
from engine.manifest import Dataset, Manifest
from engine.tokens.template import PromptError

FIRST = 5
"""Unreadable rows and the like that are named one by one."""
_BATCH = 512


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens of context of the hosts that may answer, and what of it an answer may take."""

    smallest: int | None = None
    largest: int | None = None
    max_tokens: int | None = None


@dataclass(slots=True)
class PromptTokens:
    """Sums over prompts; later turns lack our own answers, which are not known yet."""

    first: int = 0
    """Tokens of each prompt's first turn, added up."""
    later: int = 0
    carried: int = 0
    """How many of our own earlier answers the later turns carry, added up."""
    longest: int = 0
    longest_index: int | None = None
    over_all: int = 0
    """Prompts that no host can hold beside max_tokens, in whichever turn."""
    over_some: int = 0
    """Prompts that only some of the hosts can hold."""


@dataclass(slots=True)
class Scan:
    """What one source holds for its dataset."""

    name: str
    source: str
    prompts: int
    """The manifest's prompt total."""
    held: int = 0
    """Rows in the source; with `more`, at least so many."""
    more: bool = False
    rows: int = 0
    """Rows read: the first `prompts`, or fewer with --limit."""
    readable: int = 0
    generations: int = 0
    left: int = 0
    """Generations that have no row on disk yet."""
    max_turns: int = 0
    multi_turn: int = 0
    with_tools: int = 0
    tool_rows: int = 0
    """Rows with tool messages: done as `last`."""
    invalid: int = 0
    invalid_first: list[InvalidRow] = field(default_factory=list)
    unservable: int = 0
    """Rows that cannot be rendered or encoded."""
    unservable_first: list[tuple[int, str]] = field(default_factory=list)
    doubles: int = 0
    """Rows whose prompt stands in this source before."""
    shared: dict[str, int] = field(default_factory=dict)
    """Rows whose prompt stands in an earlier dataset, by its name."""
    exact: bool = False
    tokens: PromptTokens = field(default_factory=PromptTokens)
    orphans: int = 0
    """Prompts with rows on disk that the source does not hold."""
    error: str = ""
    """Why the source cannot be read (on)."""
    hint: str = ""
    shown: list[Served] = field(default_factory=list)


class Scanner:
    """Scans the datasets of a manifest one after the other."""

    def __init__(
        self, manifest: Manifest, counter: PromptCounter, *, limit: int | None, show: int
    ) -> None:
        self._manifest = manifest
        self._counter = counter
        self._limit = limit
        self._show = show
        self._seen: dict[bytes, str] = {}
        """First 16 bytes of a prompt's hash, to the dataset that holds it first."""

    def scan(self, dataset: Dataset, window: Window, pilot: Pilot, *, read: bool = True) -> Scan:
        """Count one source; errors of the source as a whole are in the result, never raised."""
        scan = Scan(dataset.name, dataset.source, dataset.prompts, exact=self._counter.exact)
        if not read:
            scan.error = "a hub dataset is not read with --offline"
            return scan
        try:
            self._count(scan, dataset)
            self._read(scan, dataset, window, pilot)
        except SourceError as error:
            scan.error, scan.hint = error.message, error.hint
        except (OSError, ValueError) as error:  # what parquet and hub readers raise
            scan.error = f"{dataset.source}: cannot be read on: {error}"
        return scan

    def _count(self, scan: Scan, dataset: Dataset) -> None:
        hub = dataset.source.startswith("hf:")
        # a hub's whole split would be downloaded only to count it
        enough = dataset.prompts + 1 if hub else None
        path = self._manifest.source_path(dataset)
        scan.held = count_rows(dataset.source, path, enough=enough)
        scan.more = hub and scan.held > dataset.prompts

    def _read(self, scan: Scan, dataset: Dataset, window: Window, pilot: Pilot) -> None:
        stop = min(dataset.prompts, self._limit or dataset.prompts)
        unmet = Unmet(pilot.ledger)
        for item in _items(PromptFeed(self._manifest, dataset, stop=stop)):
            scan.rows += 1
            if isinstance(item, InvalidRow):
                scan.invalid += 1
                if len(scan.invalid_first) < FIRST:
                    scan.invalid_first.append(item)
                continue
            unmet.meet(item.key)
            self._note(scan, item, dataset, pilot)
            self._weigh(scan, item, window)
        scan.orphans = unmet.ok if stop == dataset.prompts else 0

    def _note(self, scan: Scan, prompt: Prompt, dataset: Dataset, pilot: Pilot) -> None:
        turns = len(prompt.turns)
        scan.readable += 1
        scan.generations += turns
        if not pilot.ledger.cut(prompt.key):
            scan.left += sum(not pilot.ledger.done(prompt.key, turn) for turn in prompt.turns)
        scan.max_turns = max(scan.max_turns, turns)
        scan.multi_turn += turns > 1
        scan.with_tools += bool(prompt.tools)
        scan.tool_rows += any(message["role"] == "tool" for message in prompt.messages)
        scan.doubles += not prompt.key.endswith(".0")
        first = self._seen.setdefault(bytes.fromhex(prompt.hash[:32]), dataset.name)
        if first != dataset.name:
            scan.shared[first] = scan.shared.get(first, 0) + 1

    def _weigh(self, scan: Scan, prompt: Prompt, window: Window) -> None:
        try:
            measure = self._counter.measure(prompt)
            if len(scan.shown) < self._show:
                scan.shown.append(self._counter.served(prompt))
        except PromptError as error:
            scan.unservable += 1
            if len(scan.unservable_first) < FIRST:
                scan.unservable_first.append((prompt.index, str(error)))
            return
        _add(scan.tokens, measure, prompt.index, window)


def _add(tokens: PromptTokens, measure: Measure, index: int, window: Window) -> None:
    first, *later = measure.tokens
    tokens.first += first
    tokens.later += sum(later)
    if measure.carries:
        tokens.carried += sum(range(len(measure.tokens)))
    longest = max(measure.tokens)
    if longest > tokens.longest:
        tokens.longest, tokens.longest_index = longest, index
    needed = longest + (window.max_tokens or 1)
    if window.largest is not None and needed > window.largest:
        tokens.over_all += 1
    elif window.smallest is not None and needed > window.smallest:
        tokens.over_some += 1


def _items(feed: PromptFeed) -> Iterator[Prompt | InvalidRow]:
    while batch := feed.batch(_BATCH):
        yield from batch

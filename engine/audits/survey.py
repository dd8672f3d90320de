"""The first pass over a run's rows: where each one is, its final grade, and what is no row."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args

from engine.audits.regrade import Learned, Regrader, Verdict, settle, shape_of
from engine.audits.rowlines import Piece, lines, parse_row, pieces, read_at, whole_end
from engine.audits.workers import Workers, usable_cores
from engine.disk.ledger import ROWS
from engine.manifest import Endpoint, Manifest
from engine.tokens.grades import Exactness, Graded
from engine.tokens.layouts import Answer, answer_of_row
from engine.tokens.pieces import Encoder
from engine.tokens.prompt_check import shape_of as prompt_shape_of
from engine.tokens.readings import NO_EVIDENCE, Readings

PROBLEMS_KEPT = 1000
"""Unreadable or doubled lines of a dataset that are remembered one by one; all are counted."""
BATCH = 32
"""Rows of a task in the second pass: a larger one gains no time and fragments the memory."""
_POOL_BYTES = 48 << 20
"""Rows that take longer than processes need to start, in bytes."""
_GRADES = frozenset(get_args(Exactness))


class Codes(Encoder, Protocol):
    """A vocabulary: text to ids and back."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; raises ValueError on an id that it does not have."""
        ...


@dataclass(frozen=True, slots=True)
class Kit:
    """What reading a run's rows takes; `codes` is None with `tokenizer = "none"`."""

    endpoint: Endpoint
    codes: Codes | None

    @property
    def reading(self) -> dict[str, Any]:
        """How this run's completions are read."""
        return {"thinking": self.endpoint.thinking, "variant": self.endpoint.tokenizer}

    def settle(self, row: dict[str, Any], answer: Answer, verdict: Verdict) -> Graded:
        """The final ids and grade of a row."""
        return settle(row, answer, verdict, self.codes, **self.reading)


class Seen(NamedTuple):
    """One line of a piece: its place, and the row's facts or what is wrong with it."""

    offset: int
    length: int
    id: str
    place: int
    """In the source, from 0."""
    turn: int
    learned: Learned | None
    problem: str = ""


class Batch(NamedTuple):
    """Some rows of one file, for the second pass."""

    path: Path
    places: list[tuple[int, int]]
    verdicts: list[Verdict]


class Woven(NamedTuple):
    """Rows of several files, for the second pass."""

    parts: list[Batch]
    order: list[int]
    """Which part gives the next row."""


@dataclass(slots=True)
class DatasetSurvey:
    """One dataset's rows; doubled and unreadable lines are none of them."""

    name: str
    path: Path
    prompts: int | None = None
    """The manifest's prompt total; None where the manifest has no such dataset any more."""
    end: int = 0
    """How much of the file is read, in bytes."""
    torn: int = 0
    """Bytes after the last whole line."""
    ids: set[str] = field(default_factory=set)
    problems: list[tuple[int, str]] = field(default_factory=list)
    """(line number from 1, what is wrong), the first PROBLEMS_KEPT."""
    unreadable: int = 0
    doubled: int = 0
    lines: int = 0
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("L"))
    numbers: array[int] = field(default_factory=lambda: array("L"))
    """Line numbers from 1."""
    indexes: array[int] = field(default_factory=lambda: array("q"))
    turns: array[int] = field(default_factory=lambda: array("L"))
    verdicts: array[int] = field(default_factory=lambda: array("H"))

    def __len__(self) -> int:
        return len(self.offsets)

    def fold(self, seen: Seen) -> Learned | None:
        """Take the next line; returns what is to be learned from it."""
        self.lines += 1
        problem = seen.problem
        self.unreadable += bool(problem)
        if not problem and seen.id in self.ids:
            self.doubled += 1
            problem = f"{seen.id} stands there twice"
        if problem:
            if len(self.problems) < PROBLEMS_KEPT:
                self.problems.append((self.lines, problem))
            return None
        self.ids.add(seen.id)
        self.offsets.append(seen.offset)
        self.lengths.append(seen.length)
        self.numbers.append(self.lines)
        self.indexes.append(seen.place)
        self.turns.append(seen.turn)
        return seen.learned

    def in_source_order(self) -> list[int]:
        """The rows' numbers by place in the source, then turn, then place in the file."""
        return sorted(range(len(self)), key=lambda row: (self.indexes[row], self.turns[row], row))


@dataclass(slots=True)
class Survey:
    """All datasets of a run in manifest order, then those that the manifest has no more."""

    datasets: list[DatasetSurvey]
    grades: Regrader
    known: list[Verdict] = field(default_factory=list)

    def batches(self, dataset: DatasetSurvey, rows: Sequence[int]) -> Iterator[Batch]:
        """These rows of a dataset, in this order."""
        for begin in range(0, len(rows), BATCH):
            part = rows[begin : begin + BATCH]
            places = [(dataset.offsets[row], dataset.lengths[row]) for row in part]
            verdicts = [self.known[dataset.verdicts[row]] for row in part]
            yield Batch(dataset.path, places, verdicts)

    def woven(self, parts: Sequence[DatasetSurvey]) -> Iterator[Batch | Woven]:
        """One dataset's rows in the order of its source, whichever runs hold them."""
        if len(parts) == 1:
            yield from self.batches(parts[0], parts[0].in_source_order())
            return
        keys = [
            ((part.indexes[row], part.turns[row], number, row), number)
            for number, part in enumerate(parts)
            for row in range(len(part))
        ]
        keys.sort()
        for begin in range(0, len(keys), BATCH):
            rows: list[list[int]] = [[] for _ in parts]
            order = [number for _, number in keys[begin : begin + BATCH]]
            for (*_, row), number in keys[begin : begin + BATCH]:
                rows[number].append(row)
            found = [[*self.batches(part, rows[n])] for n, part in enumerate(parts)]
            empty = Batch(parts[0].path, [], [])
            yield Woven([batches[0] if batches else empty for batches in found], order)


def survey(folder: Path, manifest: Manifest, work: Workers[Kit]) -> Survey:
    """Read every whole line of every rows.jsonl once."""
    return survey_all([(folder, manifest)], work)


def survey_all(runs: Sequence[tuple[Path, Manifest]], work: Workers[Kit]) -> Survey:
    """The same for several runs of one identity: what all rows say of a provider grades each."""
    datasets = [part for folder, manifest in runs for part in _datasets(folder, manifest)]
    result = Survey(datasets, Regrader(thinking=runs[0][1].endpoint.thinking))
    for dataset in result.datasets:
        found = (Piece(p.path, p.begin, p.end) for p in pieces(dataset.path, dataset.end))
        for piece in work.map(partial(look, dataset.name), found):
            for seen in piece:
                if (learned := dataset.fold(seen)) is not None:
                    result.grades.fold(learned)
    _resolve(result)
    return result


def look(name: str, kit: Kit, piece: Piece) -> list[Seen]:
    """What the lines of one piece of a dataset's rows are."""
    known: dict[Any, Any] = {}  # equal objects once, so that they travel between processes once
    return [_seen(name, kit, offset, line, known.setdefault) for offset, line in lines(piece)]


def rows_of(kit: Kit, batch: Batch | Woven) -> Iterator[tuple[dict[str, Any], Answer, Graded]]:
    """The rows of a batch with their final grades."""
    if isinstance(batch, Woven):
        streams = [rows_of(kit, part) for part in batch.parts]
        yield from (next(streams[number]) for number in batch.order)
        return
    for row, verdict in zip(read_at(batch.path, batch.places), batch.verdicts, strict=True):
        answer = answer_of_row(row)
        yield row, answer, kit.settle(row, answer, verdict)


def make_kit(endpoint: Endpoint, path: Path | None = None, cache_dir: Path | None = None) -> Kit:
    """Load what reading a run takes (0.2 s for a vocabulary); raises VocabularyError.

    A vocabulary file that the manifest names is not needed: its ranks are the pinned ones, and a
    relative path would be looked for in the wrong folder.
    """
    if endpoint.tokenizer == "none":
        return Kit(endpoint, None)
    from engine.tokens.vocabulary import load_vocabulary

    return Kit(endpoint, load_vocabulary(endpoint.tokenizer, path=path, cache_dir=cache_dir))


def processes_for(folder: Path, *, live: bool) -> int:
    """How many processes are worth their start; a live run keeps the other cores."""
    size = sum(path.stat().st_size for path in folder.glob(f"*/{ROWS}"))
    return 1 if live or size < _POOL_BYTES else min(8, usable_cores())


def _datasets(folder: Path, manifest: Manifest) -> list[DatasetSurvey]:
    totals = {dataset.name: dataset.prompts for dataset in manifest.datasets}
    left = sorted(path.parent.name for path in folder.glob(f"*/{ROWS}"))
    found = []
    for name in dict.fromkeys((*totals, *left)):
        path = folder / name / ROWS
        end = whole_end(path)
        size = path.stat().st_size if path.is_file() else 0
        found.append(DatasetSurvey(name, path, totals.get(name), end=end, torn=max(0, size - end)))
    return found


def _seen(name: str, kit: Kit, offset: int, line: bytes, once: Callable[[Any, Any], Any]) -> Seen:
    try:
        row = parse_row(line, name)
    except ValueError as error:
        return Seen(offset, len(line), "", 0, 0, None, str(error))
    learned = _learn(kit, row, once)
    return Seen(offset, len(line), row["id"], row["index"], row["turn"], learned)


def _learn(kit: Kit, row: dict[str, Any], once: Callable[[Any, Any], Any]) -> Learned:
    given = row["exactness"] if kit.codes is None or row["exactness"] == "engine" else None
    if given is not None and given not in _GRADES:
        given = "unverified"
    evidence, shape = NO_EVIDENCE, None
    if given is None and kit.codes is not None:
        readings = Readings(answer_of_row(row), kit.codes, **kit.reading)
        evidence, shape = readings.evidence, shape_of(readings, row["completion_ids"])
    provider = row["provider"]
    return Learned(
        once(provider, provider),
        given,
        once(evidence, evidence),
        once(shape, shape),
        _prompt(row, once),
    )


def _prompt(row: dict[str, Any], once: Callable[[Any, Any], Any]) -> Any:
    if row["prompt_ids"] is None:
        return None
    shape = prompt_shape_of(row["messages"], row.get("tools"))
    return once(shape, shape), len(row["prompt_ids"]), row["usage"].get("prompt_tokens")


def _resolve(result: Survey) -> None:
    """Give every row the number of its verdict."""
    numbers: dict[Verdict, int] = {}
    verdicts = result.grades.verdicts()
    for dataset in result.datasets:
        for _ in range(len(dataset)):
            dataset.verdicts.append(numbers.setdefault(next(verdicts), len(numbers)))
    result.known = list(numbers)

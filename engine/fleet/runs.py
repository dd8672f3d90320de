"""Opens run directories for reading: one run, the shards of one, or several that go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.disk.rundir import RUN, STATUS, differs, read_json
from engine.disk.runrecord import run_problem
from engine.errors import UsageError
from engine.fleet.neighbours import has_asked, shards_in
from engine.fleet.shares import shard_label
from engine.manifest import Manifest


@dataclass(frozen=True, slots=True)
class OpenRun:
    """One run directory, as its run.json describes it."""

    folder: Path
    manifest: Manifest
    """The numbers of the whole, where this is a shard."""
    identity: Mapping[str, Any]
    index: int = 1
    count: int = 1
    totals: Mapping[str, int] = field(default_factory=dict)
    """Of a shard: the prompt totals of the whole run, where it differs from the manifest's."""

    @property
    def label(self) -> str:
        """What tells it from its neighbours."""
        return shard_label(self.index, self.count) if self.count > 1 else str(self.folder)


@dataclass(frozen=True, slots=True)
class RunSet:
    """What is taken as one."""

    runs: tuple[OpenRun, ...]
    missing: tuple[str, ...] = ()
    """Shards of the run that are not among them."""
    root: Path | None = None
    """The output folder that was given for all of them."""
    single: bool = False
    """One folder was named, and it is a run directory itself."""

    @property
    def sharded(self) -> bool:
        """Whether they are the shards of one run."""
        return self.runs[0].count > 1

    @property
    def absence(self) -> str:
        """What is to be said of each missing shard."""
        if self.root is None:
            return "is not among the folders given"
        return f"has no folder in {self.root}"

    @property
    def manifest(self) -> Manifest:
        """The newest in the order given; model, tokenizer and thinking are those of all."""
        return self.runs[-1].manifest

    @property
    def names(self) -> tuple[str, ...]:
        """Datasets that the manifests name, in their order."""
        return tuple(dict.fromkeys(d.name for run in self.runs for d in run.manifest.datasets))

    @property
    def title(self) -> str:
        """The run's name, or the names of all."""
        return ", ".join(dict.fromkeys(run.manifest.run.name for run in self.runs))

    def prompts(self, name: str) -> int:
        """A dataset's prompt total over all; of shards that of the whole run, missing ones too."""
        if self.sharded:
            return self.runs[-1].totals.get(name) or sum(self._manifest(name)[-1:])
        return sum(self._manifest(name))

    def asked(self, name: str) -> int:
        """The manifest's number of prompts, which --allow-short may have lowered."""
        found = self._manifest(name)
        return sum(found[-1:] if self.sharded else found)

    def _manifest(self, name: str) -> list[int]:
        sets = (dataset for run in self.runs for dataset in run.manifest.datasets)
        return [dataset.prompts for dataset in sets if dataset.name == name]


def open_runs(paths: Sequence[Path]) -> RunSet:
    """These folders as one; an output folder stands for the shards in it.

    Raises UsageError where they do not go together: shards of other runs, one of them twice, or
    runs with another identity (DESIGN §4).
    """
    folders = [folder for path in paths for folder in _expand(path)]
    runs = tuple(_read(folder) for folder in folders)
    _check_distinct(runs)
    for run in runs[1:]:
        _check_same(runs[0], run)
    if folders == list(paths) and len(runs) == 1:
        return RunSet(runs, single=True)
    root = paths[0] if len(paths) == 1 and folders != list(paths) else None
    return RunSet(runs) if runs[0].count == 1 else _shards(runs, root)


def _expand(path: Path) -> Iterator[Path]:
    """The folder itself, or the shards in one that holds nothing but shards."""
    inner = [] if (path / RUN).exists() or (path / STATUS).exists() else shards_in(path)
    if len({count for _, count, _ in inner}) > 1:  # what a mistaken --shard I/N left is no part
        inner = [shard for shard in inner if has_asked(shard[2])] or inner
    yield from [folder for _, _, folder in inner] or [path]


def _read(folder: Path) -> OpenRun:
    record = read_json(folder / RUN)
    if not isinstance(record, dict) or "manifest" not in record:
        raise UsageError(f"{folder} is no run directory (it has no readable {RUN})")
    try:
        manifest = Manifest.model_validate(record["manifest"])
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise UsageError(f"{folder / RUN}: manifest.{place}: {problem['msg']}") from None
    if words := run_problem({"identity": {"datasets": {}}, **record}):
        raise UsageError(f"{folder / RUN} is not readable as a run's record: {words}")
    identity = record.get("identity") or manifest.identity()
    shard = record.get("shard")
    if shard is None:
        return OpenRun(folder, manifest, identity)
    return OpenRun(folder, manifest, identity, shard["index"], shard["count"], shard["prompts"])


def _check_distinct(runs: Sequence[OpenRun]) -> None:
    seen: set[Path] = set()
    for run in runs:
        real = run.folder.resolve()
        if real in seen:
            raise UsageError(f"{run.folder} is named twice: its rows would count double")
        seen.add(real)


def _check_same(first: OpenRun, other: OpenRun) -> None:
    if first.count != other.count:
        raise UsageError(
            f"{first.folder} is {_kind(first)}, {other.folder} is {_kind(other)}: "
            "they cannot be taken as one"
        )
    if words := list(differs(dict(first.identity), dict(other.identity))):
        raise UsageError(
            f"{first.folder} and {other.folder} have another identity:\n  " + "\n  ".join(words),
            hint="Only what the same model answered in the same way is taken as one.",
        )


def _shards(runs: tuple[OpenRun, ...], root: Path | None) -> RunSet:
    by_index: dict[int, OpenRun] = {}
    for run in runs:
        if (twin := by_index.setdefault(run.index, run)) is not run:
            raise UsageError(
                f"{twin.folder} and {run.folder} are both {run.label}: rows would count double"
            )
    count = runs[0].count
    missing = [shard_label(i, count) for i in range(1, count + 1) if i not in by_index]
    return RunSet(tuple(by_index[index] for index in sorted(by_index)), tuple(missing), root=root)


def _kind(run: OpenRun) -> str:
    return f"one of {run.count} shards" if run.count > 1 else "a whole run"

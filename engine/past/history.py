"""One line of history.jsonl: the snapshot's numbers, small enough for days, and back again.

A line holds status.json's fields, and what the screens draw beyond them where it says something.
It leaves out what stands elsewhere (the journal), what can be counted from the lines themselves
(the series) and single rows. A dataset that stands still is not repeated: the newest line that
names it holds, and so do a server's words. Every `WHOLE_EVERY`th line of a session tells all, so
that a lost line costs little.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

from engine.clock import iso
from engine.disk.entries import moment
from engine.link.picture import from_wire
from engine.view.frame import dataset_status, status
from engine.view.snapshot import DatasetView, ErrorLine, Snapshot

WHOLE_EVERY = 30
"""Lines, that is five minutes at one each ten seconds."""
WORDS_KEPT = 160
"""Characters of a server's words: failures.jsonl and attempts.jsonl have them in full."""
SCREEN = "screen"
_TIMES = ("started_at", "heartbeat_at", "first_at", "last_at")
_ELSEWHERE = frozenset({"journal", "output", "slowest", "last_rows", "last_failures"})
_RUNNING = frozenset({"evidence", "eta_s", "words"})
"""What of a dataset changes by the clock alone, or is told apart."""
_DIGITS = 4


class Historian:
    """Writes one session's lines."""

    def __init__(self) -> None:
        self._lines = 0
        self._told: dict[str, Any] = {}
        self._words: dict[tuple[str, str, str | None], str] = {}

    def line(self, snapshot: Snapshot, *, whole: bool = False) -> dict[str, Any]:
        """The next line; `whole` names every dataset."""
        whole = whole or self._lines % WHOLE_EVERY == 0
        self._lines += 1
        record = status(snapshot)
        views = [self._dataset(view, whole=whole) for view in snapshot.datasets]
        more = _more(snapshot, record)
        record["datasets"] = [view for view in views if view]
        return {"at": iso(snapshot.heartbeat_at), **record, **({SCREEN: more} if more else {})}

    def _dataset(self, view: DatasetView, *, whole: bool) -> dict[str, Any]:
        """Nothing where it stands as it was told last."""
        record = dataset_status(view)
        for line, error in zip(record["errors"], view.errors, strict=True):
            words = self._new_words(view.name, error, whole=whole)
            line.update(_more(replace(error, words=words), line))
        if more := _more(view, record):
            record[SCREEN] = more
        stands = _without_clock(record)
        if not whole and self._told.get(view.name) == stands:
            return {}
        self._told[view.name] = stands
        return record

    def _new_words(self, name: str, error: ErrorLine, *, whole: bool) -> str:
        """A server's words, empty where they are as they were told last."""
        words, cause = error.words[:WORDS_KEPT], (name, error.family, error.provider)
        if not whole and self._words.get(cause) == words:
            return ""
        self._words[cause] = words
        return words


def _without_clock(record: dict[str, Any]) -> dict[str, Any]:
    errors = [_without(line, _RUNNING) for line in record["errors"]]
    return {**_without(record, _RUNNING), "errors": errors}


def _without(record: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def _more(item: Any, told: Container[str] = ()) -> dict[str, Any]:
    """The fields that are not told yet and not at their default."""
    found = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if field.name not in told and _recorded(field) and value != _default(field):
            found[field.name] = _plain(value)
    return found


def _recorded(field: Field[Any]) -> bool:
    return field.name not in _ELSEWHERE and "Series" not in str(field.type)


def _default(field: Field[Any]) -> Any:
    """MISSING where there is none, which equals nothing."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _more(value)
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def carried(view: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset's record with the words that its record before had, where it tells none."""
    words = {_cause(line): line.get("words") for line in before.get("errors") or ()}
    errors = [
        line
        if line.get("words") or not words.get(_cause(line))
        else {**line, "words": words[_cause(line)]}
        for line in view.get("errors") or ()
    ]
    return {**view, "errors": errors}


def _cause(line: Mapping[str, Any]) -> tuple[Any, Any]:
    return line["family"], line["provider"]


def picture(record: Mapping[str, Any], datasets: Iterable[Mapping[str, Any]]) -> Snapshot:
    """The snapshot that a line and the newest records of all datasets stand for.

    Raises KeyError, TypeError, ValueError or AttributeError where they are none of ours.
    """
    views = [_view(view) for view in datasets]
    whole = {**record, **record.get(SCREEN, {}), "datasets": views}
    return from_wire({SCREEN: _timed(whole)})


def _view(record: Mapping[str, Any]) -> dict[str, Any]:
    errors = [_timed(line) for line in record.get("errors") or ()]
    return {**record, **record.get(SCREEN, {}), "errors": errors}


def _timed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Times as epoch seconds."""
    return {
        name: moment(value) if name in _TIMES and isinstance(value, str) else value
        for name, value in record.items()
    }

"""A Snapshot as JSON and back: what control.sock sends to the screens of other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from engine.frame import status
from engine.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    JournalEntry,
    ProviderView,
    Series,
    Snapshot,
)

_SERIES = ("rate", "tokens_rate", "errors_rate", "limit_series")


def to_wire(snapshot: Snapshot) -> dict[str, Any]:
    """status.json's object, and under `screen` everything that the screens draw."""
    return {**status(snapshot), "screen": asdict(snapshot)}


def from_wire(record: Mapping[str, Any]) -> Snapshot:
    """The snapshot that `to_wire` was given. Fields that this version does not know are left out.

    Raises KeyError, TypeError or ValueError where the record is none of ours.
    """
    values = _known(Snapshot, record["screen"])
    values["datasets"] = tuple(_dataset(item) for item in values["datasets"])
    values["providers"] = tuple(_make(ProviderView, item) for item in values["providers"])
    values["journal"] = tuple(_make(JournalEntry, item) for item in values["journal"])
    for name in _SERIES:
        values[name] = _series(values[name])
    return Snapshot(**values)


def _dataset(record: Mapping[str, Any]) -> DatasetView:
    values = _known(DatasetView, record)
    values["errors"] = tuple(_make(ErrorLine, item) for item in values["errors"])
    values["attempts"] = _make(AttemptRate, values["attempts"])
    values["rate"] = _series(values["rate"])
    return DatasetView(**values)


def _series(record: Mapping[str, Any]) -> Series:
    return Series(record["start"], record["width"], tuple(record["values"]))


def _make(kind: Any, record: Mapping[str, Any]) -> Any:
    return kind(**_known(kind, record))


def _known(kind: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in record.items() if name in names}

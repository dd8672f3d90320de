"""Times as a report shows them: this machine's local time, as the evidence sentences have it."""

from __future__ import annotations

from datetime import UTC, datetime


def _local(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC).astimezone()


def stamp(epoch: float) -> str:
    """`2026-11-30 14:03:22`."""
    return _local(epoch).strftime("%Y-%m-%d %H:%M:%S")


def day(epoch: float) -> str:
    """`2026-11-30`."""
    return _local(epoch).strftime("%Y-%m-%d")


def clock(epoch: float, *, dated: bool = False) -> str:
    """`14:03`, or `30 Nov 14:03`."""
    return _local(epoch).strftime("%d %b %H:%M" if dated else "%H:%M")


def zone(epoch: float) -> str:
    """`UTC+01:00`."""
    offset = _local(epoch).strftime("%z")
    return f"UTC{offset[:3]}:{offset[3:5]}"


def midnight_offset(epoch: float) -> float:
    """Seconds from local midnight to this moment."""
    local = _local(epoch)
    return local.hour * 3600.0 + local.minute * 60.0 + local.second + local.microsecond / 1e6

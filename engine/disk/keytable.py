"""Compact tables of 64-bit numbers: what a million prompts may cost in memory is a few bytes each.

A dictionary of a million keys takes 100 MB and more; sorted columns take 8 bytes per number.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

_MASK: Final = (1 << 64) - 1
_OCCURRENCE: Final = 0x9E3779B97F4A7C15
_TURN: Final = 0xC2B2AE3D27D4EB4F
_ATTEMPT: Final = 0x165667B19E3779F9
"""Odd constants: hashes are random already, the rest only has to keep apart what they share."""
_FIRST_SLOTS: Final = 1 << 10


def prompt_number(key: str) -> int:
    """The 64-bit number of a prompt's key (`hash16.occurrence`)."""
    return (int(key[:16], 16) + int(key[17:]) * _OCCURRENCE) & _MASK


def generation_number(prompt: int, turn: int) -> int:
    """The 64-bit number of one turn of a prompt."""
    return (prompt + turn * _TURN) & _MASK


def request_number(generation: int, attempt: int) -> int:
    """The 64-bit number of one attempt at a generation."""
    return (generation + attempt * _ATTEMPT) & _MASK


class Columns:
    """Numbers in order, each with a value (`typecode` of `array`); grows by sorted batches."""

    def __init__(self, typecode: str) -> None:
        self.keys: array[int] = array("Q")
        self.values: array[int] = array(typecode)

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: int) -> int:
        """The place of a number, or -1."""
        place = bisect_left(self.keys, key)
        return place if place < len(self.keys) and self.keys[place] == key else -1

    def merge(self, batch: Mapping[int, int]) -> None:
        """Take in numbers with their values; one that is there already gets the new value.

        A few steps for each new number, and the old ones are copied in stretches: no step takes
        long, so that other threads are not kept waiting.
        """
        keys: array[int] = array("Q")
        values: array[int] = array(self.values.typecode)
        begin = 0
        for key in sorted(batch):
            place = bisect_left(self.keys, key, begin)
            keys += self.keys[begin:place]
            values += self.values[begin:place]
            keys.append(key)
            values.append(batch[key])
            begin = place + (place < len(self.keys) and self.keys[place] == key)
        keys += self.keys[begin:]
        values += self.values[begin:]
        self.keys, self.values = keys, values


class Occurrences:
    """How often each prompt hash was met: a hash table of 8-byte keys, 24 to 48 bytes for each.

    Like a dictionary of counts, as `make_prompt` uses one.
    """

    def __init__(self) -> None:
        self._used = 0
        self._keys: array[int] = array("Q", bytes(8 * _FIRST_SLOTS))
        self._counts: array[int] = array("I", bytes(array("I").itemsize * _FIRST_SLOTS))

    def __len__(self) -> int:
        return self._used

    def columns(self) -> tuple[array[int], array[int]]:
        """All that it holds, to be written as it is, or to be filled."""
        return self._keys, self._counts

    @classmethod
    def unfilled(cls, used: int) -> Occurrences:
        """One of so many keys, whose columns are to be filled with what they held."""
        made = cls()
        made._used, made._keys, made._counts = used, array("Q"), array("I")
        return made

    def get(self, key: bytes, default: int) -> int:
        """The count of an 8-byte key."""
        return self._counts[self._slot(int.from_bytes(key))] or default

    def __setitem__(self, key: bytes, count: int) -> None:
        number = int.from_bytes(key)
        slot = self._slot(number)
        if not self._counts[slot]:
            self._used += 1
            if 2 * self._used > len(self._keys):
                self._grow()
                slot = self._slot(number)
        self._keys[slot] = number
        self._counts[slot] = count

    def _slot(self, number: int) -> int:
        """Where a key stands, or may be put; an empty slot has no count."""
        keys, counts, mask = self._keys, self._counts, len(self._keys) - 1
        slot = number & mask
        while counts[slot] and keys[slot] != number:
            slot = slot + 1 & mask
        return slot

    def _grow(self) -> None:
        keys, counts = self._keys, self._counts
        self._keys = array("Q", bytes(2 * 8 * len(keys)))
        self._counts = array(counts.typecode, bytes(2 * counts.itemsize * len(counts)))
        for number, count in zip(keys, counts, strict=True):
            if count:
                slot = self._slot(number)
                self._keys[slot], self._counts[slot] = number, count

"""Token ids as pieces of text that can be shown; loads the vocabulary, so off the loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.disk.rundir import RUN, read_json
from engine.errors import EaglegenError

if TYPE_CHECKING:
    from engine.tokens.vocabulary import Vocabulary

_CHARACTER_MOST = 4
"""Bytes of the longest character: so many tokens may share one."""


class Piece(NamedTuple):
    """The text of one token, or of a few that share a character."""

    text: str
    special: bool


def vocabulary_of(output: str) -> Vocabulary | None:
    """The vocabulary of a run; None where it has none or it cannot be had."""
    record = read_json(Path(output) / RUN)
    manifest = record.get("manifest") if isinstance(record, dict) else None
    endpoint: Any = manifest.get("endpoint") if isinstance(manifest, dict) else None
    name = endpoint.get("tokenizer") if isinstance(endpoint, dict) else None
    if not isinstance(name, str) or name == "none":
        return None
    return _loaded(name, endpoint.get("tokenizer_path"))


@lru_cache(maxsize=2)
def _loaded(name: str, path: str | None) -> Vocabulary | None:
    from engine.tokens.vocabulary import load_vocabulary

    file = Path(path) if path else None
    for place in (file, None) if file is not None and file.exists() else (None,):
        try:
            return load_vocabulary(name, path=place)
        except EaglegenError:
            continue
    return None


def pieces(vocabulary: Vocabulary, ids: Sequence[int]) -> list[Piece]:
    """The text of each id; raises ValueError on one that the vocabulary does not have."""
    specials = set(vocabulary.special_tokens.values())
    out: list[Piece] = []
    held: list[bytes] = []
    for token in ids:
        special = token in specials
        if special and held:
            out.append(Piece(b"".join(held).decode("utf-8", "replace"), False))
            held = []
        held.append(vocabulary.decode_bytes([token]))
        text = _whole(held)
        if text is not None:
            out.append(Piece(text, special))
            held = []
    if held:
        out.append(Piece(b"".join(held).decode("utf-8", "replace"), False))
    return out


def _whole(held: list[bytes]) -> str | None:
    """The bytes as text once no character of theirs is cut."""
    data = b"".join(held)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"
        return None if cut and len(held) < _CHARACTER_MOST else data.decode("utf-8", "replace")

"""Plain text between the tokens that survive decoding: cut apart, unspaced, encoded cheaply.

Special tokens are hard boundaries: encoding the pieces and joining equals encoding the whole.
Readings of one reply differ in whitespace at the edges of pieces only, so a piece is encoded in
three parts (head, middle, tail) and a variant pays for its head or tail alone.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from engine.tokens import kimi

_ADDED_IDS: Final = {kimi.NAMED_SPECIALS[token]: token for token in kimi.ADDED_IDS}
_ADDED: Final = re.compile("(" + "|".join(map(re.escape, _ADDED_IDS)) + ")")
_OTHER_SPECIALS: Final = tuple(
    text for text in kimi.special_tokens() if text not in _ADDED_IDS and text.startswith("[")
)
_OTHER_NAMED: Final = re.compile(
    "|".join(re.escape(text) for text in kimi.special_tokens() if text not in _ADDED_IDS)
)

# The pre-tokenizer ends a piece at each of these, whatever stands before and after: a space
# between two printable characters opens a new piece, and so does punctuation after a Han
# character, because no alternative of the pattern crosses them and none looks behind itself.
_PRINTABLE: Final = r"[!-~\u4e00-\u9fff]"
_SPACE: Final = f"(?<={_PRINTABLE}) (?={_PRINTABLE})"
_CUT: Final = re.compile(
    _SPACE + r"|(?<=[\u4e00-\u9fff])(?=[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"
)
# Runs of non-whitespace count in the vocabulary's own cutting of long texts: keep them whole.
_CUT_LONG: Final = re.compile(_SPACE)
_LAST_CUT: Final = re.compile(f"(?s:.*)(?P<cut>{_CUT.pattern})")
_LAST_CUT_LONG: Final = re.compile(f"(?s:.*)(?P<cut>{_SPACE})")
_WINDOW: Final = 240
"""How far from its ends a piece is searched for a cut, in characters."""


class Encoder(Protocol):
    """What readings need of a vocabulary; raises UnencodableTextError on lone surrogates."""

    def encode(self, text: str) -> list[int]:
        """Ids of a text, with special tokens in it as their ids."""
        ...

    def encode_plain(self, text: str) -> list[int]:
        """Ids of a text, with special tokens in it as plain characters."""
        ...


def split(text: str) -> list[str]:
    """Pieces and added tokens in turn: plain text at the even places, tokens at the odd ones."""
    return _ADDED.split(text)


def unspaced(parts: list[str]) -> list[str]:
    """Without the one space that an engine puts on each side of an added token.

    The prompt ends in an added token too, so the start counts as one. Between two adjacent
    tokens the engine puts a single space (vllm-project/vllm#33457).
    """
    last = len(parts) - 1
    result = parts.copy()
    for index in range(0, len(parts), 2):
        piece = result[index].removeprefix(" ")
        result[index] = piece.removesuffix(" ") if index < last else piece
    return result


def has_other_specials(parts: list[str]) -> bool:
    """Whether plain pieces hold the text of a special token that decoding would have skipped."""
    return any(
        ("<|" in piece or any(text in piece for text in _OTHER_SPECIALS))
        and _OTHER_NAMED.search(piece)
        for piece in parts[::2]
    )


class PieceEncoder:
    """Encodes the pieces of one reply, remembering the parts that its readings share."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, list[int]] = {"": []}

    def ids(self, parts: list[str]) -> list[int]:
        """Ids of pieces and added tokens in turn, as `split` gives them."""
        result: list[int] = []
        for index, part in enumerate(parts):
            if index % 2:
                result.append(_ADDED_IDS[part])
            elif part:
                result += self.piece(part)
        return result

    def length(self, parts: list[str]) -> int:
        """How many ids that gives."""
        return sum(
            1 if index % 2 else sum(len(self._part(item)) for item in _parts(part))
            for index, part in enumerate(parts)
        )

    def special_ids(self, parts: list[str]) -> list[int]:
        """The same, where every special token in a piece is taken for the token itself."""
        return [token for part in parts for token in self._encoder.encode(part)]

    def piece(self, text: str) -> list[int]:
        """Ids of plain text."""
        ids = self._known.get(text)
        if ids is None:
            ids = [token for part in _parts(text) for token in self._part(part)]
            self._known[text] = ids
        return ids

    def _part(self, text: str) -> list[int]:
        ids = self._known.get(text)
        if ids is None:
            ids = self._known[text] = self._encoder.encode_plain(text)
        return ids


def _parts(text: str) -> tuple[str, ...]:
    """The text as head, middle and tail, cut where whitespace at the ends moves no cut."""
    if len(text) > kimi.MAX_ENCODE_CHARS:  # the vocabulary cuts by offsets then
        return (text,)
    long = len(text) > kimi.MAX_RUN_CHARS
    first = (_CUT_LONG if long else _CUT).search(text, 0, _WINDOW)
    if first is None:
        return (text,)
    head = first.start()
    pattern = _LAST_CUT_LONG if long else _LAST_CUT
    last = pattern.match(text, max(head, len(text) - _WINDOW))
    tail = last.start("cut") if last else head
    return text[:head], text[head:tail], text[tail:]

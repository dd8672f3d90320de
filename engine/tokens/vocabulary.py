"""The Kimi vocabulary: found, checked by sha256 on every read, and loaded into tiktoken.

The only module that imports tiktoken, splintr or huggingface_hub, each when it is needed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import VocabularyError
from engine.tokens import kimi

if TYPE_CHECKING:
    import tiktoken

_LONG_RUN: Final = re.compile(
    # The look-behind anchors a try at the start of a run: linear on hostile texts.
    rf"(?<!\S)\S{{{kimi.MAX_RUN_CHARS + 1},}}|(?<!\s)\s{{{kimi.MAX_RUN_CHARS + 1},}}"
)
_HINT: Final = (
    f"Name the right file ({kimi.VOCABULARY_FILE} of {kimi.REPOSITORY}) as tokenizer_path, "
    'or leave tokenizer_path out, or set tokenizer = "none" to store text only.'
)


class UnencodableTextError(ValueError):
    """A text with a lone surrogate: it is no Unicode text and has no token ids."""


class Vocabulary:
    """A loaded vocabulary: text to ids and back, as the model's own tokenizer does it.

    Safe to use from several threads. `source` says where the ranks came from, `notes` what had
    to be mended on the way (a cached file with a wrong hash that was replaced).
    """

    def __init__(
        self, encoding: tiktoken.Encoding, *, name: str, source: str, notes: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.source = source
        self.notes = notes
        self.special_tokens: dict[str, int] = kimi.special_tokens()
        self._encoding = encoding
        self._special_set = frozenset(self.special_tokens)

    @property
    def n_vocab(self) -> int:
        """Number of ids, reserved ones included."""
        return kimi.N_VOCAB

    def encode(self, text: str) -> list[int]:
        """Ids of a text; every special token in it becomes its id, as on the servers.

        Raises `UnencodableTextError` on a lone surrogate.
        """
        _refuse_surrogates(text)
        if len(text) <= kimi.MAX_RUN_CHARS:
            return self._encode_chunk(text)
        return [token for chunk in _chunks(text) for token in self._encode_chunk(chunk)]

    def encode_plain(self, text: str) -> list[int]:
        """Ids of a text in which special tokens are taken as the characters they consist of."""
        _refuse_surrogates(text)
        if len(text) <= kimi.MAX_RUN_CHARS:
            return self._encoding.encode_ordinary(text)
        return [token for chunk in _chunks(text) for token in self._encoding.encode_ordinary(chunk)]

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes of the ids; raises ValueError on an id that the vocabulary does not have."""
        try:
            return self._encoding.decode_bytes(ids)
        except (KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"not token ids of {self.name}: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def _encode_chunk(self, chunk: str) -> list[int]:
        return self._encoding.encode(
            chunk, allowed_special=self._special_set, disallowed_special=()
        )


def load_vocabulary(
    name: str, *, path: Path | None = None, cache_dir: Path | None = None
) -> Vocabulary:
    """Load the vocabulary called `name` (one of `kimi.VARIANTS`, which share their ranks).

    Sources in this order: `path`; our cache; the ranks compiled into splintr-rs; the hub (extra
    `hf`). Raises `VocabularyError` when none has the pinned ranks. Takes about 0.2 s.
    """
    if name not in kimi.VARIANTS:
        raise VocabularyError(
            f"no vocabulary is called {name!r}", hint=f"Known: {', '.join(kimi.VARIANTS)}, none."
        )
    if path is not None:
        file = path / kimi.VOCABULARY_FILE if path.is_dir() else path
        return _build(_read_checked(file), name=name, source=str(file))
    cached = (cache_dir or default_cache_dir()) / f"{kimi.VOCABULARY_SHA256[:16]}.tiktoken"
    data, source, notes = _find(cached)
    return _build(data, name=name, source=source, notes=notes)


def default_cache_dir() -> Path:
    """The platform's cache folder for this program; XDG_CACHE_HOME is respected."""
    import platformdirs

    return platformdirs.user_cache_path("eaglegen-tui", appauthor=False)


def _find(cached: Path) -> tuple[bytes, str, tuple[str, ...]]:
    """The first source with the pinned ranks, where it was, and why others were passed over."""
    notes: list[str] = []
    if cached.exists():
        try:
            return _read_checked(cached), str(cached), ()
        except VocabularyError as error:
            notes.append(f"{error.message}; replaced")
    sources: tuple[tuple[str, Callable[[], bytes]], ...] = (
        ("splintr-rs", _ranks_from_splintr),
        (f"{kimi.REPOSITORY}@{kimi.REVISION[:12]}", _ranks_from_hub),
    )
    for source, load in sources:
        try:
            data = load()
        except VocabularyError as error:
            notes.append(error.message)
            continue
        notes.extend(_store(cached, data))
        return data, source, tuple(notes)
    raise VocabularyError(
        f"no source has the vocabulary {kimi.VOCABULARY_SHA256}: {'; '.join(notes)}", hint=_HINT
    )


def _read_checked(file: Path) -> bytes:
    """The file's bytes, if they are the pinned ones."""
    try:
        with file.open("rb") as stream:
            # A wrong file can be of any size (a user may name the weights): hash it in pieces.
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            stream.seek(0)
            data = stream.read() if found == kimi.VOCABULARY_SHA256 else b""
    except OSError as error:
        raise VocabularyError(
            f"the vocabulary {file} cannot be read: {error.strerror or error}", hint=_HINT
        ) from error
    # A file replaced between the two reads must not slip through.
    return _checked(data, f"the vocabulary {file}", found)


def _checked(data: bytes, what: str, found: str | None = None) -> bytes:
    if found is None or found == kimi.VOCABULARY_SHA256:
        found = hashlib.sha256(data).hexdigest()
    if found != kimi.VOCABULARY_SHA256:
        raise VocabularyError(
            f"{what} has sha256 {found}, expected {kimi.VOCABULARY_SHA256}", hint=_HINT
        )
    return data


def _ranks_from_splintr() -> bytes:
    """The ranks of splintr's own copy, in the format of `tiktoken.model`.

    Only the ranks: its Kimi tokenizer adds synthetic tokens of its own from 163840 on.
    """
    try:
        import splintr
    except ImportError as error:
        raise VocabularyError(f"splintr-rs cannot be imported: {error}") from error
    try:
        tokenizer = splintr.Tokenizer.from_pretrained("kimi_k2")
        lines = [
            b"%s %d\n" % (base64.b64encode(bytes(tokenizer.decode_token_bytes(rank))), rank)
            for rank in range(kimi.N_RANKS)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VocabularyError(f"this splintr-rs has no Kimi ranks: {error}") from error
    return _checked(b"".join(lines), "the vocabulary rebuilt from splintr-rs")


def _ranks_from_hub() -> bytes:
    try:
        import huggingface_hub
    except ImportError as error:
        raise VocabularyError("huggingface_hub is not installed (extra `hf`)") from error
    try:
        file = huggingface_hub.hf_hub_download(
            kimi.REPOSITORY, kimi.VOCABULARY_FILE, revision=kimi.REVISION
        )
    except Exception as error:  # the hub's errors come from several libraries
        raise VocabularyError(f"{kimi.REPOSITORY} cannot be downloaded: {error}") from error
    return _read_checked(Path(file))


def _store(cached: Path, data: bytes) -> tuple[str, ...]:
    """Write the cache atomically; a folder that cannot be written costs time, not the run."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=cached.parent, prefix=f".{cached.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(temporary).replace(cached)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        return (f"the vocabulary cannot be cached in {cached.parent}: {error.strerror or error}",)
    return ()


def _build(data: bytes, *, name: str, source: str, notes: tuple[str, ...] = ()) -> Vocabulary:
    import tiktoken

    pairs = (line.split() for line in data.splitlines())
    encoding = tiktoken.Encoding(
        name=name,
        pat_str=kimi.PATTERN,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in pairs},
        special_tokens=kimi.special_tokens(),
    )
    vocabulary = Vocabulary(encoding, name=name, source=source, notes=notes)
    if vocabulary.encode("<|im_end|>") != [kimi.IM_END] or encoding.n_vocab != kimi.N_VOCAB:
        raise VocabularyError(f"the vocabulary from {source} does not have <|im_end|> at 163586")
    return vocabulary


def _refuse_surrogates(text: str) -> None:
    """Because tiktoken would silently encode a lone surrogate as U+FFFD."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnencodableTextError(
            f"lone surrogate U+{ord(text[error.start]):04X} at character {error.start}"
        ) from error


def _chunks(text: str) -> Iterator[str]:
    """Cut a text where the model's tokenizer does: it never sees more than a chunk at a time."""
    for begin in range(0, len(text), kimi.MAX_ENCODE_CHARS):
        part = text[begin : begin + kimi.MAX_ENCODE_CHARS]
        start = 0
        for run in _LONG_RUN.finditer(part):
            for cut in range(run.start() + kimi.MAX_RUN_CHARS, run.end(), kimi.MAX_RUN_CHARS):
                yield part[start:cut]
                start = cut
        yield part[start:]

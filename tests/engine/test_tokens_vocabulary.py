"""The vocabulary: where it comes from, when it is refused, and how it encodes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kimi_cases import vocabulary

from engine.errors import VocabularyError
from engine.tokens import kimi
from engine.tokens.vocabulary import UnencodableTextError, default_cache_dir, load_vocabulary


def cached_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_ranks_come_from_splintr_first_and_from_the_cache_then(tmp_path: Path) -> None:
    first = load_vocabulary("kimi-k2.5", cache_dir=tmp_path / "new")
    second = load_vocabulary("kimi-k2.6", cache_dir=tmp_path / "new")
    assert first.source == "splintr-rs"
    assert second.source == str(cached_file(tmp_path / "new"))
    assert second.encode("Hi") == first.encode("Hi") == [18699]


def test_the_cache_is_the_published_file(tmp_path: Path) -> None:
    load_vocabulary("kimi-k2.5", cache_dir=tmp_path)
    data = cached_file(tmp_path).read_bytes()
    assert len(data) == kimi.VOCABULARY_BYTES
    assert hashlib.sha256(data).hexdigest() == kimi.VOCABULARY_SHA256


def test_a_file_of_the_user_is_used(tmp_path: Path) -> None:
    load_vocabulary("kimi-k2.5", cache_dir=tmp_path / "cache")
    file = cached_file(tmp_path / "cache").rename(tmp_path / "tiktoken.model")
    assert load_vocabulary("kimi-k2-thinking", path=file).source == str(file)
    assert load_vocabulary("kimi-k2-thinking", path=tmp_path).source == str(file)


@pytest.mark.parametrize("content", [b"", b"aGk= 0\n", b"x" * kimi.VOCABULARY_BYTES])
def test_a_wrong_file_is_refused_with_both_hashes(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tiktoken.model"
    file.write_bytes(content)
    with pytest.raises(VocabularyError) as refusal:
        load_vocabulary("kimi-k2.5", path=file)
    assert hashlib.sha256(content).hexdigest() in str(refusal.value)
    assert kimi.VOCABULARY_SHA256 in str(refusal.value)
    assert "tokenizer_path" in refusal.value.hint


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=r"nothing\.model"):
        load_vocabulary("kimi-k2.5", path=tmp_path / "nothing.model")


def test_a_damaged_cache_is_replaced_and_named(tmp_path: Path) -> None:
    load_vocabulary("kimi-k2.5", cache_dir=tmp_path)
    file = cached_file(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    mended = load_vocabulary("kimi-k2.5", cache_dir=tmp_path)
    assert mended.source == "splintr-rs"
    assert kimi.VOCABULARY_SHA256 in mended.notes[0]
    assert load_vocabulary("kimi-k2.5", cache_dir=tmp_path).notes == ()


def test_without_any_source_each_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(VocabularyError, match=r"splintr-rs.*huggingface_hub"):
        load_vocabulary("kimi-k2.5", cache_dir=tmp_path)


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    loaded = load_vocabulary("kimi-k2.5", cache_dir=blocked / "cache")
    assert loaded.encode("Hi") == [18699]
    assert "cannot be cached" in loaded.notes[0]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(VocabularyError, match=r"kimi-k2\.5, kimi-k2\.6, kimi-k2-thinking, none"):
        load_vocabulary("kimi-k3")


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("XDG folders are a matter of Linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "eaglegen-tui"


def test_special_tokens_have_the_published_ids() -> None:
    table = vocabulary().special_tokens
    assert len(table) == 256
    assert table["<|im_end|>"] == 163586
    assert table["<|reserved_token_163589|>"] == 163589
    assert {table["<think>"], table["</think>"], table["[PAD]"]} == {163606, 163607, 163839}
    assert all(vocabulary().encode(text) == [token] for text, token in table.items())
    assert vocabulary().n_vocab == 163840


def test_special_tokens_can_be_taken_as_characters() -> None:
    plain = vocabulary().encode_plain("<|im_end|>")
    assert max(plain) < kimi.N_RANKS
    assert vocabulary().decode(plain) == "<|im_end|>"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_gives_the_text_back(text: str) -> None:
    assert vocabulary().decode(vocabulary().encode(text)) == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ude00\ud83d", "中" * 30_000 + "\udc80"])
def test_a_lone_surrogate_is_no_text(text: str) -> None:
    with pytest.raises(UnencodableTextError, match="lone surrogate U\\+"):
        vocabulary().encode(text)
    with pytest.raises(UnencodableTextError):
        vocabulary().encode_plain(text)


@pytest.mark.parametrize("ids", [[163840], [-1], [2**40], [1, 2, 999_999]])
def test_ids_outside_the_vocabulary_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="not token ids"):
        vocabulary().decode(ids)


def slow_chunks(text: str) -> list[str]:
    """The model's own cutting, character by character."""
    chunks = []
    for begin in range(0, len(text), 400_000):
        part = text[begin : begin + 400_000]
        start, length = 0, 0
        for index, character in enumerate(part):
            same = index > 0 and character.isspace() == part[index - 1].isspace()
            length = length + 1 if same else 1
            if length > 25_000:
                chunks.append(part[start:index])
                start, length = index, 1
        chunks.append(part[start:])
    return chunks


@pytest.mark.parametrize(
    "text",
    [
        "ab " * 20_000,
        "x" * 25_000 + " " + "y" * 25_001,
        "z" * 75_001,
        " " * 60_000 + "a",
        "\u3000\x1c\u00a0" * 9_000,
        "w " * 199_990 + "<|im_end|>" + "tail" * 40_000,
        "12345 " * 133_400,
    ],
)
def test_long_texts_are_cut_where_the_model_cuts_them(text: str) -> None:
    whole = vocabulary().encode(text)
    assert whole == [token for chunk in slow_chunks(text) for token in vocabulary().encode(chunk)]

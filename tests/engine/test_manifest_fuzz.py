"""Whatever stands in a manifest or in .env: it is taken, or refused in words, nothing else."""

from __future__ import annotations

import copy
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toml_text import toml_text

from engine.errors import ExitCode, ManifestError, UsageError
from engine.manifest import Manifest, parse_manifest
from engine.settings import key_for, load_settings
from engine.wire.client import Client

WHOLE = """\
[run]
name = "story"
output = "out"
[endpoint]
base_url = "https://openrouter.ai/api/v1"
model = "m/k"
tokenizer = "none"
tokenizer_path = "v"
thinking = true
api = "auto"
tools_mode = "raw"
token_ids = "auto"
stream = false
response_cache = true
headers = { X-Title = "a" }
extra_body = { plugins = [{ id = "a", on = true }] }
provider = { order = ["a/int4"], allow_fallbacks = false, max_price = { prompt = 1 } }
[sampling]
temperature = 1.0
max_tokens = 8192
[limits]
concurrency = 2000
max_cost_usd = 86.0
request_timeout_s = 1800
max_attempts = 8
on_length = "keep"
[[datasets]]
name = "B6"
source = "b6.jsonl"
prompts = 15000
token_budget = 10_000_000
max_cost_usd = 5
turns = "all"
sampling = { max_tokens = 4096, stop = ["a", "b"] }
[[datasets]]
name = "B7"
source = "b7.jsonl"
prompts = 1
"""
Made = TypeVar("Made")
PATH = Path("manifest.toml")
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    TEXTS,
    st.sampled_from(
        ["", "~", "~no-such-user/x", "\x00", "Bearer x", "http://a:b@c", "D\n[x]", ".."]
    ),
    st.datetimes(),
    st.dates(),
    st.times(),
)
KEYS = st.one_of(TEXTS, st.sampled_from(["n", "model", "max_tokens", "host", "order", "name"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield value, key
        yield from slots(inner)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """The whole manifest with one to three keys changed, deleted or added."""
    document = copy.deepcopy(tomllib.loads(WHOLE))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list(slots(document)) or [(document, "x")]))
        kind = draw(st.sampled_from(["change", "delete", "add"]))
        if kind == "delete":
            container.pop(key, None) if isinstance(container, dict) else container.pop(key)
        elif kind == "change":
            container[key] = draw(VALUES)
        elif isinstance(container, dict):
            container[draw(KEYS)] = draw(VALUES)
        else:
            container.append(draw(VALUES))
    return document


def attempt(make: Callable[[], Made]) -> Made | UsageError:
    """What was made, or the refusal; any other exception is the test's failure."""
    try:
        return make()
    except UsageError as error:
        return error


def take(text: str) -> None:
    """Accept a manifest with all that a run makes of it, or refuse it in words."""
    manifest = attempt(lambda: parse_manifest(text, PATH))
    if isinstance(manifest, UsageError):
        assert isinstance(manifest, ManifestError)
        assert all(line.startswith(str(PATH)) for line in manifest.message.split("\n"))
        return
    record = orjson.dumps([manifest.model_dump(mode="json"), manifest.identity()])
    assert Manifest.model_validate(orjson.loads(record)[0]).identity() == manifest.identity()
    Client(manifest.endpoint.base_url, key="sk-x", headers=manifest.endpoint.headers)
    places = [manifest.output_path, *map(manifest.source_path, manifest.datasets)]
    assert all("\x00" not in str(place) for place in places)


def test_the_unchanged_manifest_is_taken() -> None:
    assert len(parse_manifest(WHOLE, PATH).datasets) == 2
    assert parse_manifest(toml_text(tomllib.loads(WHOLE)), PATH) == parse_manifest(WHOLE, PATH)


@settings(max_examples=400, deadline=None)
@given(documents())
def test_any_document_is_taken_or_refused_in_words(document: dict[str, Any]) -> None:
    take(toml_text(document))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 30), TEXTS)
def test_any_damaged_text_is_taken_or_refused_in_words(at: int, gone: int, put: str) -> None:
    take(WHOLE[:at] + put + WHOLE[at + gone :])


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("EAGLEGEN_", "OPENROUTER_")):
            monkeypatch.delenv(name)


NAMES = (
    "EAGLEGEN_API_KEY",
    "OPENROUTER_API_KEY",
    "EAGLEGEN_THEME",
    "EAGLEGEN_ASCII",
    "EAGLEGEN_FPS",
    "EAGLEGEN_INTERVAL_S",
    "EAGLEGEN_CACHE_DIR",
    "EAGLEGEN_TOKENIZER_PATH",
)
WORDS = st.one_of(
    TEXTS,
    st.sampled_from(["nan", "inf", "-1", "1e999", "~nobody-has-this-name/x", "'", '"x\n y"', "\\"]),
)


@pytest.mark.usefixtures("bare")
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=4), st.binary(max_size=20))
def test_any_env_file_is_taken_or_refused_in_words(
    tmp_path: Path, values: dict[str, str], tail: bytes
) -> None:
    lines = "".join(f"{name}={value}\n" for name, value in values.items())
    (tmp_path / ".env").write_bytes(lines.encode() + tail)
    found = attempt(lambda: load_settings(tmp_path))
    if isinstance(found, UsageError):
        assert found.exit_code is ExitCode.USAGE
        assert "environment or .env" in found.message or str(tmp_path) in found.message
        return
    key = attempt(lambda: key_for(found, "https://openrouter.ai/api/v1"))
    assert isinstance(key, UsageError) or (key and key.isascii() and key.isprintable())
    assert found.interval_s <= 86_400

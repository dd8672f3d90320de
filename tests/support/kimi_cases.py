"""The real Kimi vocabulary, and the golden cases where the shared folder is at hand."""

from __future__ import annotations

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from engine.tokens.grades import Graded, grade
from engine.tokens.layouts import Answer
from engine.tokens.profiles import UNKNOWN, Profile
from engine.tokens.readings import Readings
from engine.tokens.vocabulary import Vocabulary, load_vocabulary

SHARED = Path(__file__).resolve().parents[3] / "shared"
VARIANT = "kimi-k2.5"


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The ranks of the installed splintr-rs, loaded once a process."""
    with tempfile.TemporaryDirectory() as folder:
        return load_vocabulary(VARIANT, cache_dir=Path(folder))


def shared(name: str) -> str:
    """A file of the shared folder beside the repository, or a skip."""
    file = SHARED / name
    if not file.exists():
        pytest.skip(f"{name} is not beside this checkout")
    return file.read_text()


def golden(name: str) -> list[dict[str, Any]]:
    """The cases of a golden JSON-lines file."""
    return [json.loads(line) for line in shared(f"golden/{name}").splitlines()]


def read(
    content: str | None,
    reasoning: str | None = None,
    *,
    count: Any = None,
    finish: str = "stop",
    calls: list[Any] | None = None,
    thinking: bool = True,
    variant: str = VARIANT,
) -> Readings:
    """The readings of an answer."""
    answer = Answer(content, reasoning, calls, finish, count)
    return Readings(answer, vocabulary(), thinking=thinking, variant=variant)


def graded(content: str | None, reasoning: str | None = None, **known: Any) -> Graded:
    """The grade of an answer whose provider is unknown, or of the profile given."""
    profile: Profile = known.pop("profile", UNKNOWN)
    return grade(read(content, reasoning, **known), profile)


def ids(text: str) -> list[int]:
    """Ids of a completion's text as sampled, special tokens as ids."""
    return vocabulary().encode(text)

"""The paragraphs that the simulated model can say, made from `phrases.toml` and a seed."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

VARIANTS = 12
"""How often each template is filled; doubles fall away."""

_SLOT = re.compile(r"<<(\w+)>>")


@cache
def _source() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    data = tomllib.loads(files(__package__).joinpath("phrases.toml").read_text("utf-8"))
    return data["slots"], data["kinds"]


def paragraphs(rng: Random) -> dict[str, list[list[str]]]:
    """Every kind of paragraph (`prose`, `code`, a language, ...): per template, its variants."""
    slots, kinds = _source()
    return {
        kind: [_variants(template, slots, rng) for template in templates]
        for kind, templates in kinds.items()
    }


def _variants(template: str, slots: dict[str, list[str]], rng: Random) -> list[str]:
    return list(dict.fromkeys(_fill(template, slots, rng) for _ in range(VARIANTS)))


def _fill(template: str, slots: dict[str, list[str]], rng: Random) -> str:
    """Fill a template so that its arithmetic is right: the numbers of one paragraph agree."""
    a, b = rng.randint(3, 97), rng.randint(2, 60)
    numbers = {
        "a": a,
        "b": b,
        "sum": a + b,
        "product": a * b,
        "even": 2 * a,
        "triangle": a * (a + 1) // 2,
        "percent": 100 * b // (a + b) + 1,
    }
    words = {key: rng.choice(values) for key, values in slots.items()}
    words["name_ascii"] = words["name"].encode("ascii", "ignore").decode()
    return _SLOT.sub(lambda m: str({**words, **numbers}[m[1]]), template)

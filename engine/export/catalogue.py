"""The formats by name: the keys of their files, what their trainers do, why rows stay out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.errors import UsageError
from engine.export import formats
from engine.export.chat_template import TemplateName
from engine.export.example import Example

_CLIPS: Final = "--max-length keeps the first N tokens of a longer row, as the trainer does"
_DROPS: Final = "--max-length leaves longer rows out: a conversation cannot be cut"
_LAST_TURN: Final = "earlier turns are context: have only the last answer supervised"
_TEMPLATE: Final = (
    "the model's own template would drop the reasoning: give it the one beside the file"
)
_RETOLD: Final = "supervises earlier answers too: not the tokens that the model read and wrote"
_PAIR: Final = ("input_ids", "loss_mask")
_ROW: Final = ("dataset", "index", "turn", "provider", "finish_reason", "exactness", "flags")


@dataclass(frozen=True, slots=True)
class Format:
    """One trainer's file."""

    name: str
    make: Callable[[Example, int | None], dict[str, Any]]
    """The record of an example for a greatest length in tokens; raises LeftOutError."""
    keys: tuple[str, ...]
    notes: tuple[str, ...]
    """What its user has to know."""
    tokens: bool = False
    """Whether the file holds ids and nothing else: then rows cut by length can go out."""
    replays: bool = False
    """Whether the trainer encodes the text of prompt and completion as they were."""
    template: TemplateName | None = None
    """The chat template that goes beside the file."""
    columns: bool = False
    """Whether the file is Parquet."""


def format_named(name: str) -> Format:
    """The format called `name`; raises UsageError."""
    if name not in FORMATS:
        raise UsageError(f"no format is called {name!r}", hint=f"Known: {', '.join(FORMATS)}.")
    return FORMATS[name]


def check_record(record: Any, form: Format) -> None:
    """Raise ValueError where a record that was read back is not what the trainer takes."""
    if not isinstance(record, Mapping) or tuple(record) != form.keys:
        raise ValueError(f"the keys are not {', '.join(form.keys)}")
    if "input_ids" in form.keys and record["input_ids"] is not None:
        _check_tokens(record["input_ids"], record["loss_mask"])
    for key in ("messages", "conversations"):
        if key in form.keys and len(record[key]) < 2:  # noqa: PLR2004 - a question, an answer
            raise ValueError(f"{key} holds no question and answer")


def _check_tokens(ids: list[int], mask: list[int]) -> None:
    if len(ids) != len(mask) or not ids:
        raise ValueError(f"{len(ids)} ids have a mask of {len(mask)}")
    try:
        array("I", ids)
    except (TypeError, OverflowError):
        raise ValueError("an id is no whole number from 0 on") from None
    if mask.count(0) + mask.count(1) != len(mask):
        raise ValueError("the mask holds something else than 0 and 1")


_SPECFORGE = Format(
    "specforge",
    formats.specforge,
    _PAIR,
    (
        "for data.prompts_path; SpecForge holds a whole file in memory, so --shard-* splits it",
        _CLIPS,
    ),
    tokens=True,
)
_SPECULATORS = Format(
    "speculators",
    formats.speculators,
    _PAIR,
    ("name each file with --data: of a folder, the .meta.json would be read as data too", _CLIPS),
    tokens=True,
)
_SPECFORGE_TEXT = Format(
    "specforge-text",
    formats.specforge_text,
    ("id", "text"),
    (
        "data.is_preformatted: true, data.chat_template: kimi-k2-thinking (the same headers)",
        f"{_LAST_TURN} (data.train_only_last_turn: true)",
        _DROPS,
    ),
    replays=True,
)
_TORCHSPEC = Format(
    "torchspec",
    formats.torchspec,
    ("id", "conversations"),
    (
        "chat_template: kimi-k25-vlm, prompt_key: conversations",
        f"{_LAST_TURN} (last_turn_loss_only: true)",
        _DROPS,
    ),
    replays=True,
)
_MODELOPT = Format(
    "modelopt",
    formats.modelopt,
    ("conversation_id", "messages", "conversations"),
    (f"{_TEMPLATE} (--chat-template)", _DROPS),
    replays=True,
    template="model_optimizer",
)
_EAGLE = Format(
    "eagle",
    formats.eagle,
    ("id", "conversations"),
    (
        f"EAGLE renders with a system prompt and Llama separators of its own, and {_RETOLD}",
        _DROPS,
    ),
)
_ANGELSLIM = Format(
    "angelslim",
    formats.angelslim,
    ("id", "conversations"),
    (
        f"AngelSlim renders with a template of its own, strips each message, and {_RETOLD}",
        _DROPS,
    ),
)
_AUTOMODEL = Format(
    "automodel",
    formats.automodel,
    ("id", "messages", "tools"),
    (f"{_TEMPLATE} (chat_template)", f"{_LAST_TURN} (mask_history: true)", _DROPS),
    replays=True,
    template="automodel",
)
_PARQUET = Format(
    "parquet",
    formats.parquet,
    (*_AUTOMODEL.keys, *_PAIR, *_ROW),
    (f"{_TEMPLATE} (chat_template)", "the mask covers the completion, as for speculators", _DROPS),
    template="automodel",
    columns=True,
)
FORMATS: Final[dict[str, Format]] = {
    form.name: form
    for form in (
        _SPECFORGE,
        _SPECULATORS,
        _SPECFORGE_TEXT,
        _TORCHSPEC,
        _MODELOPT,
        _EAGLE,
        _ANGELSLIM,
        _AUTOMODEL,
        _PARQUET,
    )
}
REASONS: Final[dict[str, str]] = {
    "length": "cut by length",
    "no_ids": "without token ids",
    "zero_mask": "with nothing supervised",
    "too_long": "longer than --max-length",
    "doubled": "twice in the run",
    "unreadable": "no rows",
    "no_prompt": "whose prompt cannot be rendered",
    "renders_otherwise": "that the trainer would render to another text",
    "system_message": "with a system message",
    "tools": "with tools",
    "names": "with named messages",
    "not_alternating": "in which the roles do not alternate",
    "blank_message": "with a blank message",
    "tool_without_id": "with a tool's return that names no call",
    "foreign_ids": "with ids that the vocabulary does not have",
    "not_unicode": "that are no Unicode text",
}
"""What is said of rows left out; grades, flags and other finish reasons speak for themselves."""

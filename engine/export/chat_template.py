"""The chat template that goes beside a file whose trainer renders conversations by itself.

The model's own template would drop the reasoning of the last answer (facts/kimi-k2.5.md). Where
the prompt ends and the supervised part begins is a matter of the run: thinking or not.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final, Literal

from engine.manifest import Endpoint
from engine.tokens import kimi
from engine.tokens.layouts import CLOSE, OPEN

TemplateName = Literal["model_optimizer", "automodel"]
SUFFIX: Final = ".chat_template.jinja"


def chat_template(name: TemplateName, endpoint: Endpoint) -> str:
    """The template as text, for the run's model and its thinking switch."""
    opens = endpoint.tokenizer == kimi.KIMI_K2_THINKING
    thinks = endpoint.thinking or opens
    settings = {
        "thinks": thinks,
        # How the prompt ends, what an answer without reasoning begins with, and how much of an
        # answer that opens with a thought belongs to the prompt.
        "lead": "" if opens else OPEN if thinks else OPEN + CLOSE,
        "answer_lead": OPEN + CLOSE if opens else CLOSE if thinks else "",
        "thought_lead": "" if opens else OPEN,
        "default_system": kimi.DEFAULT_SYSTEM_PROMPT if opens else "",
    }
    head = "".join(
        f"{{%- set {key} = {json.dumps(value)} -%}}\n" for key, value in settings.items()
    )
    return head + (files(__package__) / "templates" / f"{name}.jinja").read_text("utf-8")

"""What spoils a good reply: each a change of its JSON (facts page, §3 and §5)."""

from __future__ import annotations

from typing import Any

Reply = dict[str, Any]

_NO_USAGE: Reply = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0}


def _message(reply: Reply) -> Reply:
    message: Reply = reply["choices"][0]["message"]
    return message


def _end(reply: Reply, finish: str | None, native: str | None) -> None:
    reply["choices"][0] |= {"finish_reason": finish, "native_finish_reason": native}


def _say(reply: Reply, content: str | None, reasoning: str | None) -> None:
    message = _message(reply)
    message["content"] = content
    for key in ("reasoning", "reasoning_content"):
        if key in message:
            message[key] = reasoning
    if "reasoning_details" in message:
        details = [{"type": "reasoning.text", "text": reasoning, "format": "unknown", "index": 0}]
        message["reasoning_details"] = details if reasoning else []


def _count(reply: Reply, completion: int, reasoning: int) -> None:
    usage = reply["usage"]
    usage["completion_tokens"] = completion
    usage["total_tokens"] = usage["prompt_tokens"] + completion
    usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}


def choices_null(reply: Reply) -> None:
    """`choices` null and no error (pydantic-ai#6900)."""
    reply["choices"] = None


def choices_empty(reply: Reply) -> None:
    """`choices` [] and no error (gram#3129)."""
    reply["choices"] = []


def empty_stop(reply: Reply) -> None:
    """Ends with `stop` after no token at all (suna#4099)."""
    _say(reply, "", None)
    _count(reply, 0, 0)


def no_finish_reason(reply: Reply) -> None:
    """A text without a terminal finish reason (pi#5793)."""
    _end(reply, None, None)


def error_in_choice(reply: Reply) -> None:
    """An error inside the first choice (nodetool#5755)."""
    _end(reply, "error", "error")
    reply["choices"][0]["error"] = {"message": "Internal server error", "code": 502}
    _say(reply, "", None)


def finish_error_partial(reply: Reply) -> None:
    """Finish reason `error`, half a text, null usage (bifrost#5425)."""
    _end(reply, "error", "error")
    content = _message(reply)["content"] or ""
    _message(reply)["content"] = content[: len(content) // 2]
    reply["usage"] = None


def network_error(reply: Reply) -> None:
    """`stop`, but natively `network_error`, empty and without usage (pi#8511)."""
    _end(reply, "stop", "network_error")
    _say(reply, "", None)
    del reply["usage"]


def other_model(reply: Reply) -> None:
    """Another model than the one asked for."""
    reply["model"] = "moonshotai/kimi-k2.6-0420"


def other_provider(reply: Reply) -> None:
    """A host that the request did not allow."""
    reply["provider"] = "DigitalOcean"


def no_usage(reply: Reply) -> None:
    """No `usage` at all."""
    del reply["usage"]


def zero_usage(reply: Reply) -> None:
    """A `usage` of zeros (litellm#21592)."""
    reply["usage"] = dict(_NO_USAGE)


def string_counts(reply: Reply) -> None:
    """Absurd usage: counts as strings, and a negative cost."""
    reply["usage"] |= {"prompt_tokens": "12", "completion_tokens": "many", "cost": -1}


def refusal(reply: Reply) -> None:
    """The API repeats what the model said in `refusal`."""
    message = _message(reply)
    message["refusal"] = message["content"]

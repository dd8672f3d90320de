"""From the bytes of a reply to an answer of this model, or to the fault that it is instead.

What is never a row (DESIGN §6, facts/openrouter.md §6) becomes a Fault: error bodies, no choices,
nothing in them, an unfinished or broken generation, another model or provider. What was paid for
and is the model's becomes a Reply; `flags` say what is doubtful about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.faults.fault import Fault, fault, fault_of_error, fault_of_page
from engine.faults.retry_hints import header
from engine.safe_text import label
from engine.wire.reply_fields import (
    TOOLS_BEGIN,
    FieldError,
    after_thinking,
    has_stray_markers,
    has_text,
    is_inline,
    read_content,
    read_ids,
    read_reasoning,
    read_tool_calls,
)
from engine.wire.reply_json import load
from engine.wire.served import model_matches, provider_matches
from engine.wire.usage import UNKNOWN, Usage, read_usage

__all__ = ["FLAGS", "Expectation", "Reply", "Usage", "parse_reply", "read_reply", "with_usage"]

FLAGS = (
    "truncated",
    "over_max_tokens",
    "no_usage",
    "reasoning_only",
    "refusal",
    "control_tokens",
)
"""What can be doubtful about a row, in the order in which rows list them (DESIGN §6)."""
_FINISHED = frozenset({"stop", "tool_calls", "length"})
_BROKEN = frozenset({"error", "network_error", "abort", "aborted", "engine_error", "server_error"})
_CUT = frozenset({"length", "max_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A finished answer of the requested model; every string in it can be encoded as UTF-8."""

    content: str | None
    """As the server gave it: untrimmed, with inline reasoning where a host puts it there."""
    reasoning: str | None = None
    """As the server gave it, untrimmed; None where there is none outside the content."""
    reasoning_field: str = ""
    """`reasoning`, `reasoning_content`, `reasoning_details`, `inline`, or empty."""
    tool_calls: list[dict[str, Any]] | None = None
    finish_reason: str
    """`stop`, `tool_calls` or `length`."""
    native_finish_reason: str | None = None
    model: str
    provider: str | None = None
    generation_id: str | None = None
    usage: Usage = UNKNOWN
    flags: tuple[str, ...] = ()
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    cached: bool = False
    """From OpenRouter's response cache: free, without counts (`/generation` has those)."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a reply must be to be an answer to its request."""

    model: str
    aliases: frozenset[str] = frozenset()
    """Canonical slugs of the model in `/models`."""
    providers: frozenset[str] | None = None
    """Display names or tags that may answer; None: any."""
    max_tokens: int | None = None
    thinking: bool = True
    tools: bool = False
    """The prompt's tools were given in raw mode: tool markers belong in the text."""


def parse_reply(
    status: int, headers: Mapping[str, str], body: bytes, expect: Expectation
) -> Reply | Fault:
    """The answer in a whole HTTP reply, or what it is instead; raises nothing."""
    try:
        document = load(body)
    except ValueError as error:
        return _unparsable(status, headers, body, str(error))
    if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's success codes
        return fault_of_error(status, headers, document)
    if not isinstance(document, dict):
        return fault("not_json", f"the reply is a JSON {type(document).__name__}", status=status)
    return read_reply(document, headers, expect, status)


def read_reply(
    document: dict[str, Any], headers: Mapping[str, str], expect: Expectation, status: int = 200
) -> Reply | Fault:
    """The answer in a parsed reply; streams are put together into the same form first."""
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    if document.get("error") or document.get("object") == "error":
        return fault_of_error(status, headers, document)
    if choice.get("error"):
        return fault_of_error(status, headers, choice["error"], document=document)
    problem = _unfinished(choice) or _stranger(document, expect)
    if problem is None:
        try:
            reply = _read(document, choice, headers, expect)
        except FieldError as error:
            problem = "malformed_reply", str(error)
        else:
            if reply is not None:
                return reply
            problem = "empty_reply", f"finish reason {choice['finish_reason']}, nothing in it"
    return _fault(*problem, document, status)


def with_usage(reply: Reply, usage: Usage, expect: Expectation) -> Reply:
    """The reply with counts that came later (a cache hit's, from `/generation`)."""
    flags = set(reply.flags) - {"no_usage", "over_max_tokens"}
    flags |= _usage_flags(usage, reply.completion_ids, expect)
    return replace(reply, usage=usage, flags=_ordered(flags))


def _read(
    document: dict[str, Any],
    choice: dict[str, Any],
    headers: Mapping[str, str],
    expect: Expectation,
) -> Reply | None:
    """The Reply, or None where there is no answer in it; raises FieldError."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise FieldError("the choice has no message")
    content, refused = _content(message)
    reasoning, source = read_reasoning(message)
    calls = read_tool_calls(message)
    if not (calls or has_text(content) or has_text(reasoning)):
        return None
    inline = reasoning is None and expect.thinking and is_inline(content)
    prompt_ids, completion_ids = read_ids(document, choice)
    native = label(choice.get("native_finish_reason"), 80)
    finish = choice["finish_reason"]
    usage = read_usage(document)
    if reasoning and usage.reasoning_tokens == 0:  # a host that does not count them
        usage = replace(usage, reasoning_tokens=None)
    flags = _usage_flags(usage, completion_ids, expect)
    flags |= _text_flags(content, reasoning, inline=inline, called=bool(calls), tools=expect.tools)
    if finish == "length" or (native or "").lower() in _CUT:
        flags.add("truncated")
    if refused or native == "refusal":
        flags.add("refusal")
    return Reply(
        content=content,
        reasoning=reasoning,
        reasoning_field="inline" if inline else source,
        tool_calls=calls,
        finish_reason=finish,
        native_finish_reason=native,
        model=document["model"],
        provider=label(document.get("provider"), 80),
        generation_id=label(document.get("id")) or label(header(headers, "x-generation-id")),
        usage=usage,
        flags=_ordered(flags),
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        cached=(header(headers, "x-openrouter-cache-status") or "").upper() == "HIT",
    )


def _content(message: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The content, and whether it is a refusal."""
    content = read_content(message)
    refusal = message.get("refusal")
    if not isinstance(refusal, str) or not has_text(refusal):
        return content, False
    return content or refusal, True  # the model wrote these tokens; some hosts move them here


def _text_flags(
    content: str | None, reasoning: str | None, *, inline: bool, called: bool, tools: bool
) -> set[str]:
    flags = set()
    # A tool section may end the reasoning without a closing tag.
    called = called or (tools and TOOLS_BEGIN in (reasoning or content or ""))
    if not (called or has_text(after_thinking(content or "", inline=inline))):
        flags.add("reasoning_only")
    if has_stray_markers(content, reasoning, inline=inline, tools=tools):
        flags.add("control_tokens")
    return flags


def _unfinished(choice: Mapping[str, Any]) -> tuple[str, str] | None:
    if not choice:
        return "no_choices", ""
    finish, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    kind = native.lower() if isinstance(native, str) else ""
    if not isinstance(finish, str) or not finish:
        return "no_finish_reason", "finish_reason is missing"
    if "content_filter" in {finish, kind}:
        return "content_filter", "finish reason content_filter"
    if finish in _BROKEN or kind in _BROKEN:
        return "finish_error", f"finish reason {finish}, native {kind or 'not given'}"
    if finish not in _FINISHED:
        return "unknown_finish", f"finish reason {finish}"
    return None


def _stranger(document: Mapping[str, Any], expect: Expectation) -> tuple[str, str] | None:
    """Another model, or a provider outside the allow list.

    A reply without a provider passes (its field is in no schema); one without a model does not.
    """
    model, provider = document.get("model"), label(document.get("provider"), 80)
    if not isinstance(model, str) or not model_matches(model, expect.model, expect.aliases):
        named = label(model) or "no model"
        return "wrong_model", f"asked for {expect.model}, answered by {named}"
    if expect.providers is None or provider is None or provider_matches(provider, expect.providers):
        return None
    return "wrong_provider", f"answered by {provider}, which is not allowed"


def _usage_flags(usage: Usage, ids: list[int] | None, expect: Expectation) -> set[str]:
    flags = set()
    if usage.completion_tokens is None:
        flags.add("no_usage")
    written = usage.completion_tokens or len(ids or ())
    if expect.max_tokens is not None and written > expect.max_tokens:
        flags.add("over_max_tokens")
    return flags


def _ordered(flags: set[str]) -> tuple[str, ...]:
    return tuple(flag for flag in FLAGS if flag in flags) if flags else ()


def _fault(family: str, message: str, document: Mapping[str, Any], status: int) -> Fault:
    words = message or label(document.get("message") or document.get("detail"), 500) or ""
    return fault(
        family,
        words,
        status=status,
        provider=label(document.get("provider"), 80),
        generation_id=label(document.get("id")),
        cost=read_usage(document).cost,
    )


def _unparsable(status: int, headers: Mapping[str, str], body: bytes, problem: str) -> Fault:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's success codes
        return fault_of_page(status, headers, text)
    generation = label(header(headers, "x-generation-id"))
    if not text:
        return fault(
            "whitespace",
            f"{len(body)} bytes of white space" if body else "an empty body",
            status=status,
            generation_id=generation,
        )
    if text.startswith("<"):
        page = fault_of_page(status, headers, text)
        return fault("html", page.message, status=status, generation_id=generation)
    if text.startswith(("{", "[")):
        words = f"{len(body)} bytes: {problem}"
        return fault("truncated_json", words, status=status, generation_id=generation)
    return fault("not_json", text[:400], status=status, generation_id=generation)

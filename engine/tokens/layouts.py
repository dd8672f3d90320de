"""What a reply's fields say the model wrote: the possible layouts of one completion.

Thinking on, a completion is reasoning, `</think>`, content and `<|im_end|>`; a reply gives it in
pieces, under several names, with or without the tags, and cut. Where the fields leave a question
open (was there a `</think>`?) there are several layouts, and the token count decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.tokens import kimi
from engine.tokens.tool_calls import SECTION_BEGIN, ToolCallError, rebuilt_section

OPEN: Final = "<think>"
CLOSE: Final = "</think>"
END: Final = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply's text as the API gave it, and the count it came with."""

    content: str | None
    reasoning: str | None = None
    tool_calls: Sequence[Any] | None = None
    finish_reason: str = "stop"
    completion_tokens: int | None = None
    """`usage.completion_tokens`; None where the server counted nothing."""
    earlier_calls: int = 0
    """Tool calls in the conversation before this answer: where the call ids go on from."""

    @property
    def cut(self) -> bool:
        """Whether the answer ended at a limit, so that no `<|im_end|>` was written."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class Layout:
    """A completion's text with its tags, up to the final `<|im_end|>`."""

    text: str
    sure: bool = True
    """Whether a count alone may settle on it; else it only keeps a row from being a mismatch."""
    edges: tuple[int, ...] = ()
    """Offsets at which a host that trims its fields would have removed newlines."""


def answer_of_row(row: Mapping[str, Any]) -> Answer:
    """The answer in a line of rows.jsonl (DESIGN §6)."""
    content, reasoning, usage = row.get("content"), row.get("reasoning"), row.get("usage")
    return Answer(
        content=content if isinstance(content, str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        tool_calls=row.get("tool_calls"),
        finish_reason=row.get("finish_reason") or "stop",
        completion_tokens=usage.get("completion_tokens") if isinstance(usage, Mapping) else None,
        earlier_calls=count_calls(row.get("messages") or ()),
    )


def count_calls(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tool calls made in a conversation so far."""
    calls = (message.get("tool_calls") for message in messages)
    return sum(len(each) for each in calls if isinstance(each, list))  # sources hold anything


def layouts(answer: Answer, *, thinking: bool, variant: str) -> list[Layout]:
    """All layouts that the fields allow, the likeliest first; at least one."""
    section, native = _section(answer)
    content, reasoning = answer.content or "", answer.reasoning or ""
    found = _arrange(reasoning, content, section, answer.cut, _Mode(thinking, variant))
    if (content if content or section else reasoning).endswith(END):
        # Some hosts give the stop token back; the model may also have typed it.
        content, reasoning = (
            (content.removesuffix(END), reasoning)
            if content
            else (content, reasoning.removesuffix(END))
        )
        found = _arrange(reasoning, content, section, answer.cut, _Mode(thinking, variant)) + found
    if not native:
        found = [Layout(item.text, sure=False) for item in found]
    return found


@dataclass(frozen=True, slots=True)
class _Mode:
    """What the prompt asked for, as far as the completion's beginning depends on it."""

    thinking: bool
    variant: str

    @property
    def opens(self) -> bool:
        """Whether the model writes `<think>` itself (K2-Thinking's prompt ends before it)."""
        return self.variant == kimi.KIMI_K2_THINKING

    @property
    def thinks(self) -> bool:
        """Whether reasoning is expected."""
        return self.thinking or self.opens


def _section(answer: Answer) -> tuple[str, bool]:
    """The tool section that the host parsed away, and whether it is certain."""
    if not answer.tool_calls or SECTION_BEGIN in (answer.content or ""):
        return "", True
    try:
        return rebuilt_section(answer.tool_calls, first=answer.earlier_calls)
    except ToolCallError:
        return "", False


def _arrange(reasoning: str, content: str, section: str, cut: bool, mode: _Mode) -> list[Layout]:
    before, tag, _ = content.partition(CLOSE)
    repeated = bool(tag) and reasoning.strip() in before  # some hosts give it in both places
    if reasoning and not repeated:
        return _separate(reasoning, content, section, cut, mode)
    return _inline(content, section, cut, mode)


def _separate(reasoning: str, content: str, section: str, cut: bool, mode: _Mode) -> list[Layout]:
    """The host parsed the reasoning out."""
    opening = OPEN if mode.opens else ""
    inner = reasoning.removeprefix(OPEN)
    closed = inner.removesuffix(CLOSE)
    rest = content + section
    with_tag = _joined(opening, closed, CLOSE, content, section)
    without_tag = _joined(opening, closed, "", content, section)
    if closed != inner:
        return [with_tag]
    if not rest:
        # Cut in the reasoning, or (far less likely than a count that is off by one) after its end.
        return [without_tag, Layout(with_tag.text, sure=False)] if cut else [with_tag, without_tag]
    if rest.startswith(CLOSE):
        return [without_tag]
    # A tool section can end the reasoning by itself; spaces on both sides are those of a tag.
    untagged = not (reasoning.endswith(" ") and rest.startswith(" "))
    if untagged and rest.removeprefix(" ").startswith(SECTION_BEGIN):
        return [with_tag, without_tag]
    return [with_tag]


def _joined(opening: str, reasoning: str, tag: str, content: str, section: str) -> Layout:
    before = f"{opening}{reasoning}"
    begin = len(before) + len(tag)
    edges = {len(before)} if reasoning == reasoning.strip() else set()
    if content and content == content.strip():
        edges |= {begin, begin + len(content)}
    return Layout(f"{before}{tag}{content}{section}", edges=tuple(sorted(edges)))


def _inline(content: str, section: str, cut: bool, mode: _Mode) -> list[Layout]:
    """The reasoning, if there is any, stands in the content."""
    shown = content.lstrip()
    opened = shown.startswith(OPEN)
    text = shown.removeprefix(OPEN) if opened else content
    whole = text + section
    if CLOSE in text or opened:
        return _tagged(text, section, mode)
    edges = _content_edges(text)
    if not mode.thinks:
        return [Layout(whole, edges=edges)]
    closing = f"{OPEN}{CLOSE}" if mode.opens else CLOSE
    closed = Layout(closing + whole, edges=tuple(edge + len(closing) for edge in edges))
    bare = Layout(whole, edges=edges)
    if SECTION_BEGIN in whole:  # it can have ended the reasoning
        return [closed, bare]
    # Without any tag the answer is all there is: after empty reasoning, or cut before its end.
    likely, doubtful = (bare, closed) if cut or mode.opens else (closed, bare)
    return [likely, Layout(doubtful.text, sure=False)]


def _tagged(text: str, section: str, mode: _Mode) -> list[Layout]:
    """The tags are in the text; `text` begins after the opening one, which may be missing."""
    if not mode.thinks and text.startswith(CLOSE):
        text = text.removeprefix(CLOSE)  # the host repeats the prompt's empty block
    opening = OPEN if mode.opens else ""
    before, tag, after = text.partition(CLOSE)
    # Fields may be trimmed before a host puts them together, or their whole afterwards.
    edges = []
    if tag and before == before.strip():
        edges.append(len(opening) + len(before))
    if after and after == after.strip():
        edges += [len(opening) + len(before) + len(tag), len(opening) + len(text)]
    elif text == text.rstrip():
        edges.append(len(opening) + len(text))
    return [Layout(f"{opening}{text}{section}", edges=tuple(edges))]


def _content_edges(content: str) -> tuple[int, ...]:
    return (0, len(content)) if content and content == content.strip() else ()

"""10,000 mutated replies: no exception escapes, no bogus row results, no intact answer is lost."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
from reply_bodies import (
    MODEL,
    SERVED,
    answering,
    calling_tools,
    finishing,
    inline,
    openrouter,
    sglang,
    vllm,
)

from engine.faults.fault import FAMILIES, Fault
from engine.wire.reply import FLAGS, Expectation, Reply, parse_reply

CASES = 10_000
EXPECT = Expectation(MODEL, providers=frozenset({"siliconflow/int4"}), max_tokens=8192)
SEEDS = [
    openrouter,
    openrouter,
    calling_tools,
    vllm,
    sglang,
    inline,
    lambda: answering(content=[{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}]),
    lambda: finishing("length", "length"),
    lambda: answering(content=None),
]
VALUES: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: False,
    lambda: 0,
    lambda: -1,
    lambda: 3.5,
    lambda: 10**30,
    lambda: 10**400,
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: "",
    lambda: " \n",
    lambda: "x",
    lambda: "stop",
    lambda: "error",
    lambda: "\ud83d",
    lambda: "\x00\x1b[2J\u202e",
    list,
    dict,
    lambda: [1, 2],
    lambda: [None],
    lambda: {"error": {"code": 429, "message": "no"}},
    lambda: {"message": "no", "code": "x"},
    lambda: SERVED,
    lambda: "Novita",
    lambda: _nested(300),
]


def _nested(depth: int) -> Any:
    value: Any = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


# --- mutations of the document ---------------------------------------------------------------


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) below `value`."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            _places(value[key], found)
    return found


def _change(body: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(_places(body, []))
    kind = rng.randrange(6)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[str(key) + "_"] = container.pop(key)
    elif kind == 2:
        container[key] = [container[key]]
    elif kind == 3 and isinstance(container, list):
        container.insert(0, rng.choice(VALUES)())
    else:
        container[key] = rng.choice(VALUES)()


def _add(body: dict[str, Any], rng: random.Random) -> None:
    body[rng.choice(["error", "object", "choices", "usage", "model"])] = rng.choice(VALUES)()


# --- mutations of the bytes ------------------------------------------------------------------


def _flip(raw: bytes, rng: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 8, 40])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def _drop(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw))
    return raw[:start] + raw[start + rng.randrange(1, 30) :]


def _repeat(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw))
    return raw[:start] + raw[start : start + rng.randrange(1, 60)] + raw[start:]


def _wrap(raw: bytes, rng: random.Random) -> bytes:
    return rng.choice(
        [
            lambda: b"\n" * 50 + raw + b"\n ",
            lambda: b"\xef\xbb\xbf" + raw,
            lambda: b"data: " + raw,
            lambda: raw + raw,
            lambda: b"<html>" + raw,
            lambda: b"[" * 5000 + raw,
            lambda: raw.replace(b"\\u", b"\\ud800\\u", 1),
            lambda: raw.replace(b'"', b"'"),
            lambda: b" " * 700,
        ]
    )()


def mutate(rng: random.Random) -> tuple[bytes, bool]:
    """A reply, and whether it was left intact."""
    body = rng.choice(SEEDS)()
    kind = rng.randrange(20)
    if kind < 11:
        for _ in range(rng.choice([1, 1, 2, 4])):
            rng.choice([_change, _change, _change, _add])(body, rng)
    raw = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if kind == 11:
        return raw, True
    if kind > 11 or rng.random() < 0.1:
        raw = rng.choice([_flip, _flip, _flip, _cut, _drop, _repeat, _wrap])(raw, rng)
    return raw, False


# --- the oracle: an answer by the letter of DESIGN §6, written without the engine -------------


def document(raw: bytes) -> Any:
    """The body by the standard library alone; None where there is none."""
    try:
        text = raw.decode("utf-8", "replace").lstrip("\ufeff")
        return json.loads(text, strict=False, parse_int=float)
    except (ValueError, RecursionError):
        return None


def is_answer(status: int, raw: bytes) -> bool:
    body = document(raw)
    if not 200 <= status < 300 or not isinstance(body, dict):
        return False
    choices = body.get("choices")
    if body.get("error") or body.get("object") == "error" or not isinstance(choices, list):
        return False
    choice = choices[0] if choices else None
    return (
        isinstance(choice, dict)
        and not choice.get("error")
        and choice.get("finish_reason") in ("stop", "tool_calls", "length")
        and not _broke_off(choice.get("native_finish_reason"))
        and _is_model(body.get("model"))
        and _is_allowed(body.get("provider"))
        and isinstance(choice.get("message"), dict)
        and _says_something(choice["message"])
    )


def _broke_off(native: Any) -> bool:
    return isinstance(native, str) and native.lower() in {"error", "network_error", "abort"}


def _is_model(model: Any) -> bool:
    return isinstance(model, str) and bool(
        re.fullmatch(re.escape(MODEL) + r"(-\d{3,8}|-\d\d-\d\d|@[0-9a-f]+)?", model)
    )


def _is_allowed(provider: Any) -> bool:
    if not isinstance(provider, str) or not provider.strip():
        return True  # no provider is named
    return "".join(filter(str.isalnum, provider.lower())) == "siliconflow"


def _says_something(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in content):
            return False
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str | None):
        return False
    calls = message.get("tool_calls")
    if calls and not (isinstance(calls, list) and all(_is_call(call) for call in calls)):
        return False
    texts: list[Any] = [content, message.get("refusal"), message.get("reasoning")]
    texts.append(message.get("reasoning_content"))
    details = message.get("reasoning_details")
    if isinstance(details, list):
        texts += [item.get("text") for item in details if isinstance(item, dict)]
    return bool(calls) or any(isinstance(text, str) and text.strip() for text in texts)


def _is_call(call: Any) -> bool:
    return (
        isinstance(call, dict)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
    )


# --- what holds for everything that comes out ------------------------------------------------


def check_reply(reply: Reply, raw: bytes) -> None:
    written = orjson.loads(orjson.dumps(asdict(reply)))  # the row writer can write it
    assert written["content"] == reply.content
    assert reply.flags == tuple(flag for flag in FLAGS if flag in reply.flags)
    assert reply.finish_reason in {"stop", "tool_calls", "length"}
    usage = reply.usage
    for tokens in (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens):
        assert tokens is None or (type(tokens) is int and 0 <= tokens <= 10**9)
    check_cost(usage.cost)
    for ids in (reply.prompt_ids, reply.completion_ids):
        assert ids is None or all(type(i) is int and i >= 0 for i in ids)
    check_texts(reply, document(raw)["choices"][0]["message"])


def check_texts(reply: Reply, message: dict[str, Any]) -> None:
    """Not a character is made up or lost, but for lone surrogates."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    refusal = message.get("refusal")
    if not content and isinstance(refusal, str) and refusal.strip():
        content = refusal
    assert reply.content == whole(content)
    if reply.reasoning_field in {"reasoning", "reasoning_content"}:
        assert reply.reasoning == whole(message[reply.reasoning_field])
    elif reply.reasoning_field == "reasoning_details":
        items = [item for item in message["reasoning_details"] if isinstance(item, dict)]
        texts = [item["text"] for item in items if item.get("type") == "reasoning.text"]
        assert reply.reasoning == whole("".join(text for text in texts if isinstance(text, str)))
    else:
        assert reply.reasoning is None


def whole(text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_fault(found: Fault) -> None:
    assert found.family in FAMILIES
    assert 0 < len(found.message) <= 500
    assert found.message.isprintable()
    assert found.retry_after_s is None or 0 <= found.retry_after_s <= 7 * 86400
    check_cost(found.cost)
    orjson.dumps(asdict(found))


def check_cost(cost: float | None) -> None:
    assert cost is None or (math.isfinite(cost) and 0 <= cost <= 10**9)


def test_ten_thousand_mutated_replies() -> None:
    rng = random.Random(20261130)
    outcomes: Counter[str] = Counter()
    for case in range(CASES):
        raw, intact = mutate(rng)
        status = (
            200 if rng.random() < 0.95 else rng.choice([201, 400, 402, 404, 429, 500, 502, 524])
        )
        found = parse_reply(status, {}, raw, EXPECT)
        where = f"case {case}: status {status}, {raw[:3000]!r}"
        if isinstance(found, Reply):
            assert is_answer(status, raw), where
            check_reply(found, raw)
            outcomes["row"] += 1
        else:
            assert not (intact and 200 <= status < 300), where
            check_fault(found)
            # Where the parser is stricter than the oracle, only these may be lost.
            strict = found.family in {"malformed_reply", "empty_reply", "wrong_model"}
            assert strict or not is_answer(status, raw), where
            outcomes[found.family] += 1
    # The mutations must reach both sides of the line, and many families, or they prove nothing.
    assert 1000 < outcomes["row"] < CASES - 1000, outcomes
    assert len(outcomes) >= 15, outcomes

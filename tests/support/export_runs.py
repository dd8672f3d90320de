"""Real runs for what reads them afterwards: six hosts that distort, and a server that gives ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e_desk import Desk, Result
from e2e_provider import playing

HOSTS: tuple[dict[str, Any], ...] = (
    {"name": "Verbatim", "tag": "verbatim"},
    {
        "name": "Spaced",
        "tag": "spaced",
        "artefact": "spaced",
        "reasoning_field": "reasoning_content",
        "weight": 3.0,
    },
    {"name": "Trimmed", "tag": "trimmed", "artefact": "trimmed"},
    {"name": "Inline", "tag": "inline", "reasoning_field": "inline_no_open", "system_prompt": True},
    {"name": "Details", "tag": "details", "reasoning_field": "reasoning_details"},
)
PLAYED: dict[str, Any] = {
    "tokenizer": "kimi-k2.5",
    "seed": 4,
    "length": {"mean_tokens": 60, "max": 200},
    "latency": {"mean_s": 0.005, "sigma": 0.1, "refusal_s": 0.0},
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CALL = {
    "id": "functions.weather:0",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}


def sources(singles: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of each dataset, by its name."""
    system = {"role": "system", "content": "Be brief."}
    talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello."}]
    asked = {"role": "assistant", "content": "", "reasoning_content": "Ask.", "tool_calls": [CALL]}
    back = {"role": "tool", "tool_call_id": "functions.weather:0", "content": "rain"}
    return {
        "A_single": [{"prompt": f"Question {n}?"} for n in range(singles)],
        "B_turns": [{"turns": [f"First {n}", "More?"], "system": "Be brief."} for n in range(12)],
        "C_tools": [{"prompt": f"Weather in town {n}?", "tools": [TOOL]} for n in range(24)],
        "D_last": [
            {"conversations": [*talk, {"from": "human", "value": f"And {n}?"}]} for n in range(8)
        ],
        "E_chain": [
            {"messages": [system, {"role": "user", "content": f"Town {n}?"}, asked, back]}
            for n in range(8)
        ],
        "F_cut": [{"prompt": f"Tell me about {n}."} for n in range(12)],
    }


def write_manifest(desk: Desk, singles: int, **endpoint: Any) -> None:
    """A manifest of all the datasets; those of F_cut are cut by length."""
    extra = {"D_last": {"turns": "last"}, "F_cut": {"sampling": {"max_tokens": 12}}}
    datasets = [
        {"name": name, "source": desk.source(f"{name}.jsonl", rows), "prompts": len(rows)}
        | extra.get(name, {})
        for name, rows in sources(singles).items()
    ]
    known = {"tokenizer": "kimi-k2.5"} | endpoint
    desk.manifest(*datasets, endpoint=known, limits={"concurrency": 32})


@contextmanager
def distorted(folder: Path, singles: int = 800) -> Iterator[tuple[Desk, Result]]:
    """A finished run on hosts that each distort in their own way."""
    folder.mkdir(parents=True, exist_ok=True)
    with playing(**PLAYED, providers=HOSTS) as provider, Desk(folder, provider.base_url) as desk:
        write_manifest(desk, singles)
        result = desk.go("--headless")
        assert result.code == 0, result.err
        yield desk, result


@contextmanager
def served(folder: Path, api: str, **endpoint: Any) -> Iterator[tuple[Desk, Result]]:
    """A finished run on a server of one's own, which returns the ids that it sampled."""
    folder.mkdir(parents=True, exist_ok=True)
    singles = endpoint.pop("singles", 100)
    host = endpoint.pop("host", {})
    providers = [HOSTS[0] | host]
    with (
        playing(**PLAYED, api=api, providers=providers) as provider,
        Desk(folder, provider.base_url) as desk,
    ):
        write_manifest(desk, singles, api=api, **endpoint)
        result = desk.go("--headless")
        assert result.code == 0, result.err
        yield desk, result

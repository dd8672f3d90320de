"""Large replies: read in a thread while the loop goes on, and to the end once they are paid for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from engine_parts import HEAD, job_of, manifest_of, reply_of
from kimi_cases import vocabulary

from engine.heavy import HEAVY_CHARS, read_if_heavy
from engine.readers import KimiReader
from engine.tokens.reader import TokenReader

BIG = "Drafting a token ahead costs little when most of them are taken. " * 30_000
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def reader(tmp_path: Path) -> KimiReader:
    manifest = manifest_of(HEAD + '[[datasets]]\nname="A"\nsource="a.jsonl"\nprompts=1\n', tmp_path)
    return KimiReader(TokenReader(vocabulary()), manifest.endpoint)


async def test_the_loop_goes_on_while_a_large_reply_is_read(reader: KimiReader) -> None:
    reply = reply_of(BIG, reasoning="")
    reading = asyncio.create_task(read_if_heavy(reader, job_of(), MESSAGES, reply))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    found = reading.result()
    assert found == reader.read(job_of(), MESSAGES, reply)
    assert found is not None
    assert found.completion_ids is not None
    assert len(found.completion_ids) > 300_000
    assert turns > 100


@pytest.mark.parametrize("where", ["prompt", "reasoning", "content"])
async def test_large_is_what_the_prompt_and_the_reply_have_together(
    reader: KimiReader, where: str
) -> None:
    text = "word " * (HEAVY_CHARS // 5)
    prompt = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    reply = reply_of(
        text if where == "content" else "Hello.", reasoning=text if where == "reasoning" else ""
    )
    messages = prompt if where == "prompt" else MESSAGES
    assert await read_if_heavy(reader, job_of(), messages, reply) is not None


async def test_a_small_reply_stays_on_the_loop(reader: KimiReader) -> None:
    assert await read_if_heavy(reader, job_of(), MESSAGES, reply_of("Hello.")) is None


async def test_what_is_paid_for_is_read_to_the_end_though_it_is_cancelled(
    reader: KimiReader,
) -> None:
    reply = reply_of(BIG, reasoning="")
    reading = asyncio.create_task(read_if_heavy(reader, job_of(), MESSAGES, reply))
    await asyncio.sleep(0)
    assert reading.cancel()
    found = await reading
    assert found is not None
    assert found.completion_ids

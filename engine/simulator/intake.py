"""The door: a request is parsed, identified, counted, and refused if no host could ever take it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from engine.clock import randomness
from engine.simulator import refusals
from engine.simulator.artefacts import as_read
from engine.simulator.call import Call, hashes, parse
from engine.simulator.chat_request import complaint
from engine.simulator.faults import triggered
from engine.simulator.outgoing import RefusedError, json_reply
from engine.simulator.topic import last_user_text
from engine.simulator.weather import Weather
from engine.simulator.writer import measure_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.clock import Clock
    from engine.simulator.scenario import Host, Scenario

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class Intake:
    """Turns bytes into Calls; counts the attempts of each prompt."""

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self._scenario = scenario
        self._clock = clock
        self._weather = Weather(scenario)
        self._measure = measure_of(scenario.tokenizer)
        self._attempts: Counter[str] = Counter()
        self._prompt_counts: dict[tuple[str, bool, tuple[bool, bool]], int] = {}
        self._ids = randomness()

    def new_id(self) -> str:
        """Return a generation id in OpenRouter's style."""
        return f"gen-{int(self._clock.wall())}-{''.join(self._ids.choices(_ALPHABET, k=20))}"

    def arrive(self, raw: bytes) -> Call:
        """Parse and identify a request; what is no JSON object counts as an empty one."""
        body = parse(raw) or {}
        prompt_hash, body_hash = hashes(body)
        self._attempts[prompt_hash] += 1
        attempt = self._attempts[prompt_hash]
        now = self._clock.monotonic()
        return Call(
            id=self.new_id(),
            raw=raw,
            body=body,
            prompt_hash=prompt_hash,
            body_hash=body_hash,
            attempt=attempt,
            started=now,
            wall=self._clock.wall(),
            rng=Random(f"{self._scenario.seed}:{prompt_hash}:{attempt}"),
            windows=self._weather.arrive(now),
        )

    def check(self, call: Call) -> None:
        """Refuse what is malformed; set the prompt's token count and the fault it asks for."""
        if text := complaint(call.body):
            raise _bad(text)
        model = call.body["model"]
        if model not in {self._scenario.model, self._scenario.canonical}:
            raise _bad(f"{model} is not a valid model ID")
        if self._scenario.reasoning_mandatory and not call.thinking:
            raise _bad("Reasoning is mandatory for this endpoint and cannot be disabled.")
        if self._scenario.api == "sglang" and call.streams and call.body.get("return_token_ids"):
            raise _bad("return_token_ids is not supported with stream=true")
        try:
            call.fault = triggered(last_user_text(call.body["messages"]), call.attempt)
        except KeyError as exc:
            raise _bad(f"the simulator knows no fault {exc}") from None
        call.prompt_tokens = self.count_prompt(call)

    def count_prompt(self, call: Call, host: Host | None = None) -> int:
        """Return the tokens of the prompt, as sent or as a host reads it."""
        key = (call.prompt_hash, call.thinking, _reading(host))
        known = self._prompt_counts.get(key)
        if known is None:
            known = len(self.prompt_ids(call, host))
            self._prompt_counts[key] = known
        return known

    def prompt_ids(self, call: Call, host: Host | None = None) -> Sequence[int]:
        """Return the ids of the prompt, as sent or as a host reads it."""
        messages = call.body["messages"]
        if host is not None:
            messages = as_read(messages, host)
        tools = call.body.get("tools")
        try:
            return self._measure.prompt_ids(messages, tools, thinking=call.thinking)
        except ValueError as exc:
            raise _bad(f"the prompt cannot be served: {exc}") from None


def _reading(host: Host | None) -> tuple[bool, bool]:
    return (False, False) if host is None else (host.drops_name, host.system_prompt)


def _bad(text: str) -> RefusedError:
    return RefusedError(json_reply(refusals.error(400, text), 400), fault="bad_request")

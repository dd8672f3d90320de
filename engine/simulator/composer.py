"""Makes replies: a good one, a spoilt one, or an error's body, as the fault table says."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import orjson

from engine.simulator.artefacts import serve
from engine.simulator.model import Model
from engine.simulator.outgoing import HTML, Outgoing, RefusedError, json_reply
from engine.simulator.reply import Usage, openrouter_reply
from engine.simulator.scene import Scene
from engine.simulator.topic import last_user_text
from engine.simulator.writer import load_writer

if TYPE_CHECKING:
    from engine.simulator.answer import Answer
    from engine.simulator.call import Call
    from engine.simulator.faults import Fault
    from engine.simulator.scenario import Host, Scenario

_NOTHING = Usage(0, 0, 0)


class Composer:
    """Knows the model and the shapes of the API; holds no state of its own."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._writer = load_writer(scenario.tokenizer, scenario.seed)
        self._model = Model(scenario, self._writer)

    def completed(self, call: Call, host: Host, fault: Fault | None) -> tuple[Outgoing, Usage]:
        """Return the reply after a generation, and what is to be charged for."""
        if fault is not None and (fault.refuse or fault.html):
            return self._error(fault, call, host), _NOTHING
        answer = self._answer(call, fault)
        usage = Usage(call.prompt_tokens, answer.completion_tokens, answer.reasoning.count)
        served = serve(answer, host, parse_tools=bool(call.body.get("tools")))
        reply = openrouter_reply(self._scenario, host, answer, served, usage, call)
        if fault is None:
            return json_reply(reply), usage
        if fault.edit is not None:
            fault.edit(reply)
        outgoing = Outgoing(fault.status, orjson.dumps(reply), {}, delivery=fault.delivery)
        return outgoing, _charged(usage, fault)

    def _answer(self, call: Call, fault: Fault | None) -> Answer:
        seed = f"{self._scenario.seed}:{call.prompt_hash}:{call.body.get('seed')}"
        answer = self._model.answer(call.body, Random(seed), thinking=call.thinking)
        answer = self._model.cut(answer, call.max_tokens)
        if fault is not None and fault.shape is not None:
            answer = fault.shape(answer, self._writer)
        return answer

    def refused(self, fault: Fault, call: Call, host: Host) -> RefusedError:
        """Return a refusal, to be raised."""
        reply = self._error(fault, call, host)
        refused = RefusedError(fault.status, None, fault=fault.name)
        refused.reply = reply
        return refused

    def _error(self, fault: Fault, call: Call, host: Host) -> Outgoing:
        if fault.refuse is None:
            return Outgoing(fault.status, (fault.html or "").encode(), {}, content_type=HTML)
        scene = self._scene(call, host)
        return json_reply(fault.refuse(scene), fault.status, scene.headers())

    def _scene(self, call: Call, host: Host) -> Scene:
        scenario = self._scenario
        window = next((w for w in call.windows if w.retry_hint or w.retry_after_s), None)
        hint = window.retry_hint if window else None
        seconds = window.retry_after_s if window else None
        return Scene(
            request_id=call.id,
            model=str(call.body.get("model")),
            provider=host.name,
            prompt_tokens=call.prompt_tokens,
            max_tokens=call.max_tokens or host.max_completion_tokens,
            context_length=host.context_length,
            retry_hint=hint or scenario.retry_hint,
            retry_after_s=scenario.retry_after_s if seconds is None else seconds,
            prompt_head=last_user_text(call.body.get("messages") or [])[:100],
            now_ms=int(call.wall * 1000),
        )


def _charged(usage: Usage, fault: Fault) -> Usage:
    if fault.charge == "full":
        return usage
    return Usage(usage.prompt, 0, 0) if fault.charge == "prompt" else _NOTHING

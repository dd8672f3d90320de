"""Makes replies: a good one, a spoilt one, or an error's body, as the fault table says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from engine.simulator.artefacts import serve
from engine.simulator.dialects import Completion, dialect_of
from engine.simulator.model import Model
from engine.simulator.outgoing import HTML, Outgoing, RefusedError, json_reply
from engine.simulator.resplit import resplit
from engine.simulator.scene import Scene
from engine.simulator.topic import last_user_text
from engine.simulator.usage import NOTHING, Usage
from engine.simulator.writer import load_writer, measure_of

if TYPE_CHECKING:
    from engine.simulator.account import Account
    from engine.simulator.answer import Answer
    from engine.simulator.call import Call
    from engine.simulator.faults import Fault
    from engine.simulator.intake import Intake
    from engine.simulator.scenario import Host, Scenario


@dataclass(frozen=True, slots=True)
class Finished:
    """A generation that has ended: the reply, what is to be charged, and the reply's JSON."""

    reply: Outgoing
    usage: Usage
    body: dict[str, Any] | None = None
    """None where the reply is an error."""
    finish: str | None = None


class Composer:
    """Knows the model, the hosts' habits and the words of the API."""

    def __init__(self, scenario: Scenario, intake: Intake, account: Account) -> None:
        self._scenario = scenario
        self._intake = intake
        self._account = account
        self._measure = measure_of(scenario.tokenizer)
        self._writer = load_writer(scenario.tokenizer, scenario.seed)
        self._model = Model(scenario, self._writer)
        self._dialect = dialect_of(scenario)

    def completed(self, call: Call, host: Host, fault: Fault | None) -> Finished:
        """Return the reply after a generation."""
        if fault is not None and fault.refuse is not None:
            return Finished(self._error(fault, call, host), NOTHING)
        done = self.generated(call, host, fault)
        body = self._dialect.reply(done)
        finish = done.served.finish
        if fault is None:
            return Finished(json_reply(body), done.usage, body, finish)
        if fault.edit is not None:
            fault.edit(body)
        reply = Outgoing(fault.status, orjson.dumps(body), {}, delivery=fault.delivery)
        return Finished(reply, _charged(done.usage, fault), body, finish)

    def generated(self, call: Call, host: Host, fault: Fault | None) -> Completion:
        """Return what the model answers and how the host serves and counts it."""
        answer = self._answer(call, host, fault)
        reasoning = call.body.get("reasoning")
        exclude = isinstance(reasoning, dict) and reasoning.get("exclude") is True
        served = serve(answer, host, parse_tools=bool(call.body.get("tools")), exclude=exclude)
        completion = answer.completion_tokens
        if not host.counts_im_end and answer.finish != "length":
            completion -= 1
        usage = Usage(call.prompt_tokens, completion, answer.reasoning.count)
        told = self._scenario.returns_token_ids and call.body.get("return_token_ids") is True
        prompt_ids = list(self._intake.prompt_ids(call, host)) if told else None
        return Completion(call, host, answer, served, usage, prompt_ids)

    def _answer(self, call: Call, host: Host, fault: Fault | None) -> Answer:
        rng = Random(f"{self._scenario.seed}:{call.prompt_hash}:{call.body.get('seed')}")
        answer = self._model.answer(call.body, rng, thinking=call.thinking)
        if host.non_canonical and rng.random() < host.non_canonical:
            answer = resplit(answer, rng, self._measure)
        answer = self._model.cut(answer, call.max_tokens)
        if fault is not None and fault.shape is not None:
            answer = fault.shape(answer, self._writer, call.max_tokens)
        return answer

    def refused(self, fault: Fault, call: Call, host: Host) -> RefusedError:
        """Return a refusal, to be raised."""
        return RefusedError(self._error(fault, call, host), fault=fault.name)

    def worded(self, refused: RefusedError) -> Outgoing:
        """Return a refusal in the words of the API that is played."""
        reply = refused.reply
        if self._scenario.api == "openrouter" or reply.content_type == HTML or not reply.body:
            return reply
        body = orjson.loads(reply.body)
        error = body["error"]
        message = error["message"] if isinstance(error, dict) else error
        status, body = self._dialect.error(reply.status, message, body)
        return replace(reply, status=status, body=orjson.dumps(body))

    def _error(self, fault: Fault, call: Call, host: Host) -> Outgoing:
        if fault.html is not None:
            return Outgoing(fault.status, fault.html.encode(), {}, content_type=HTML)
        if fault.refuse is None:
            return Outgoing(fault.status, b"", {}, delivery=fault.delivery)
        scene = self._scene(fault, call, host)
        return json_reply(fault.refuse(scene), fault.status, scene.headers())

    def _scene(self, fault: Fault, call: Call, host: Host) -> Scene:
        scenario = self._scenario
        hints = [w.retry_hint for w in call.windows] + [scenario.retry_hint, fault.hint]
        seconds = [w.retry_after_s for w in call.windows]
        seconds += [scenario.retry_after_s, fault.retry_after_s]
        price = host.completion_usd_per_m or 1.0
        return Scene(
            request_id=call.id,
            model=str(call.body.get("model")),
            provider=host.name,
            prompt_tokens=call.prompt_tokens,
            max_tokens=call.max_tokens or host.max_completion_tokens,
            context_length=host.context_length,
            retry_hint=next(h for h in hints if h is not None),
            retry_after_s=next(s for s in seconds if s is not None),
            prompt_head=last_user_text(call.body.get("messages") or [])[:100],
            now_ms=int(call.wall * 1000),
            affordable_tokens=max(int(self._account.balance * 1e6 / price), 0),
        )


def _charged(usage: Usage, fault: Fault) -> Usage:
    if fault.charge == "full":
        return usage
    return Usage(usage.prompt, 0, 0) if fault.charge == "prompt" else NOTHING

"""Commands applied to a session: what they do, what they answer, and what the journal says."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
from engine_parts import dataset_text
from session_parts import fail, read_all, session_of, start, succeed

from engine import commands
from engine.commands import (
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    Pause,
    Resume,
    RetryFailed,
    Skip,
    Stop,
    Throttle,
    Unskip,
)
from engine.disk.jsonlines import dump_line
from engine.disk.ledger import FAILURES
from engine.disk.rundir import EVENTS
from engine.errors import UsageError
from engine.faults.fault import fault
from engine.feed.feeder import Feeder
from engine.feed.prompts import Prompt
from engine.journal import skipped_earlier
from engine.plan import EndpointFacts
from engine.session import Session
from engine.steering import apply

TWO = dataset_text("A", 5) + dataset_text("B", 5)
ROWS = {"A": 5, "B": 5}


def say(session: Session, command: Command) -> str:
    session.wake.clear()
    said = apply(session, command, origin="screen")
    assert session.wake.is_set()  # so that the loop acts on it at once
    assert session.journal.recent[-1].text == said
    assert session.journal.recent[-1].kind == "command"
    return said


async def test_pause_and_resume_of_the_run(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        start(session, 2)
        assert say(session, Pause()) == "paused the run: 2 in flight will finish"
        assert start(session, 9) == []
        assert say(session, Resume()) == "resumed the run"
        assert len(start(session, 9)) == 8


async def test_pause_and_resume_of_a_dataset_while_the_next_goes_on(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        start(session, 1)
        assert say(session, Pause("A")) == "paused A: 1 in flight will finish"
        assert {job.prompt.dataset for job in start(session, 3)} == {"B"}
        say(session, Pause())
        assert say(session, Resume("A")) == "resumed A; the run as a whole is still paused"
        say(session, Pause("B"))
        assert say(session, Resume()) == "resumed the run; still paused: B"
        assert {job.prompt.dataset for job in start(session, 3)} == {"A"}


async def test_throttle_sets_the_ceiling_at_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        assert say(session, Throttle(7)) == "ceiling now 7 in flight"
        assert session.limiter.ceiling == 7
        assert session.limiter.limit <= 7


async def test_a_throttle_beyond_the_open_files_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > 10**7:
        pytest.skip("this system sets no bound on open files")
    async with session_of(tmp_path, TWO, ROWS) as session:
        before = session.limiter.ceiling
        with pytest.raises(UsageError, match="open files"):
            apply(session, Throttle(hard + 1), origin="screen")
        assert session.limiter.ceiling == before
        assert session.journal.count == 0


async def test_skip_ends_a_datasets_dispatch_and_unskip_takes_it_back(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        start(session, 2)
        assert say(session, Skip("A")) == "skipped A: 3 prompts left out, 2 finish"
        assert {job.prompt.dataset for job in start(session, 2)} == {"B"}
        assert say(session, Unskip("A")) == "took the skip of A back: 3 prompts left to do"
        assert {job.prompt.dataset for job in start(session, 3)} == {"A"}


async def test_a_skip_is_journalled_so_that_a_resume_knows_it(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        say(session, Skip("A"))
        session.sink.close()
        await session.sink.run()
        assert skipped_earlier(session.plan.folder) == {"A"}
        (line,) = (session.plan.folder / EVENTS).read_text().splitlines()
        assert '"command":"skip"' in line
        assert '"origin":"screen"' in line
    async with session_of(tmp_path, TWO, ROWS) as again:
        assert again.schedule.queues["A"].state == "skipped"
        assert again.schedule.queues["B"].state == "queued"


async def test_drain_starts_nothing_more_and_counts_as_ordered(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        start(session, 4)
        assert say(session, Drain()) == "draining: 4 in flight will finish"
        assert (session.course.draining, session.course.ordered) == (True, True)
        assert not session.course.stopping


async def test_stop_cancels_what_is_in_flight(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        start(session, 4)
        assert say(session, Stop()) == "stopping: 4 requests are cancelled"
        assert (session.course.draining, session.course.stopping) == (True, True)


async def test_a_provider_is_excluded_only_where_the_router_can_obey(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        said = say(session, ExcludeProvider("Novita"))
        assert said.startswith("the router is asked to leave Novita out")
        assert session.excluded == {"Novita"}
    async with session_of(tmp_path, TWO, ROWS, facts=EndpointFacts(api="vllm")) as session:
        with pytest.raises(UsageError, match="OpenRouter"):
            apply(session, ExcludeProvider("Novita"), origin="screen")


async def test_excluding_says_whether_such_a_provider_is_known(tmp_path: Path) -> None:
    facts = EndpointFacts(api="openrouter", slugs={"Novita": "novita", "AtlasCloud": "atlas-cloud"})
    async with session_of(tmp_path, TWO, ROWS, facts=facts) as session:
        assert say(session, ExcludeProvider("novita")) == "the router is asked to leave Novita out"
        assert session.excluded == {"Novita"}, "as replies spell it"
        again = say(session, ExcludeProvider("Novita"))
        assert again == "the router is asked to leave Novita out already"
        assert say(session, ExcludeProvider("Novtia")) == (
            "the router is asked to leave Novtia out; no reply has come from a provider of that "
            "name (there are AtlasCloud, Novita)"
        )


async def test_the_only_host_left_is_not_excluded(tmp_path: Path) -> None:
    facts = EndpointFacts(api="openrouter", slugs={"Novita": "novita", "AtlasCloud": "atlas-cloud"})
    async with session_of(tmp_path, TWO, ROWS, facts=facts) as session:
        say(session, ExcludeProvider("Novita"))
        with pytest.raises(UsageError, match="AtlasCloud is the only host left"):
            apply(session, ExcludeProvider("atlascloud"), origin="screen")
        assert session.excluded == {"Novita"}
        say(session, IncludeProvider("Novita"))
        say(session, ExcludeProvider("AtlasCloud"))
        assert session.excluded == {"AtlasCloud"}


async def test_an_exclusion_can_be_taken_back(tmp_path: Path) -> None:
    facts = EndpointFacts(api="openrouter", slugs={"Novita": "novita", "Other": "other"})
    async with session_of(tmp_path, TWO, ROWS, facts=facts) as session:
        say(session, ExcludeProvider("Novita"))
        said = say(session, IncludeProvider("NOVITA"))
        assert said == "took the exclusion of Novita back: the router may choose it again"
        assert session.excluded == set()
        with pytest.raises(UsageError, match="Novita is not left out by order") as caught:
            apply(session, IncludeProvider("Novita"), origin="screen")
        assert caught.value.hint == "Left out: none is."


@pytest.mark.parametrize("kind", [Pause, Resume, Skip, Unskip, RetryFailed])
async def test_an_unknown_dataset_is_refused_with_the_known_ones(tmp_path: Path, kind: Any) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        with pytest.raises(UsageError) as caught:
            apply(session, kind("C"), origin="socket")
        assert "'C'" in caught.value.message
        assert caught.value.hint == "There are A, B."
        assert session.journal.count == 0


async def give_up(session: Session, feeder: Feeder, prompt: Prompt) -> None:
    """What settling a hopeless prompt leaves in the feeder and on disk."""
    feeder.failed.add(prompt.key)
    record = {"id": prompt.id(0), "family": "moderation", "message": "", "index": prompt.index}
    folder = session.plan.folder / prompt.dataset
    folder.mkdir(exist_ok=True)
    with (folder / FAILURES).open("ab") as file:
        file.write(dump_line(record))


async def test_failed_prompts_go_back_into_the_schedule(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        queue = session.schedule.queues["A"]
        for job in start(session, 5):
            if job.prompt.index < 2:
                fail(session, job, fault("moderation"))
                await give_up(session, session.feeders["A"], job.prompt)
            else:
                succeed(session, job)
        assert (queue.ok, queue.failed, queue.state) == (3, 2, "done")
        assert say(session, RetryFailed("A")) == "2 failed prompts go back into the schedule"
        assert (queue.ok, queue.failed, queue.left, queue.exhausted) == (3, 0, 2, False)
        await read_all(session)
        again = [job for job in start(session, 9) if job.prompt.dataset == "A"]
        assert sorted(job.prompt.index for job in again) == [0, 1]
        assert say(session, RetryFailed()) == "0 failed prompts go back into the schedule"


async def test_failed_prompts_wait_until_their_source_is_read(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        session.feeders["A"].failed.add("0123456789abcdef.0")
        with pytest.raises(UsageError, match="once its source is read"):
            apply(session, RetryFailed("A"), origin="screen")


async def test_every_command_can_be_applied(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"dataset": "A", "limit": 3, "provider": "X"}
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        for kind in commands.NAMES.values():
            needed = {name: arguments[name] for name in kind.__dataclass_fields__}
            assert say(session, kind(**needed))

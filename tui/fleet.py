"""`eaglegen-tui run --ray`: workers on many hosts, one screen; Ray places and restarts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.disk.outfolder import wanted_folder
from engine.disk.rundir import is_held
from engine.errors import RunHeldError, UsageError
from engine.fleet.merge import Fleet
from engine.fleet.neighbours import check_shard, shard_folder
from engine.fleet.rayhosts import RayCrew, require_ray
from engine.fleet.run import FleetRun
from engine.fleet.view import Whole
from engine.manifest import load_manifest
from engine.plan import Options, Plan, Shard, make_plan
from engine.settings import key_for, load_settings
from tui.detach import UNTETHERED, tether
from tui.jobs import Watching, check_look, watch


def run_on_ray(
    path: Path, options: Options, watching: Watching, *, address: str | None, workers: int | None
) -> int:
    """Run every shard on a worker of its own and watch them as one; returns the exit code."""
    if address is None:
        raise UsageError("--workers is for --ray", hint="One process takes --concurrency.")
    count = _count(options, workers)
    require_ray()
    manifest = load_manifest(path)
    settings = watching.look.over(load_settings(path.parent, Path.cwd()))
    check_look(settings, watching)
    root = wanted_folder(options.output, manifest.output_path).resolve()
    check_shard(root, count)
    shards = [
        replace(options, shard=Shard(number, count), output=root / shard_folder(number, count))
        for number in range(1, count + 1)
    ]
    plan = make_plan(manifest, shards[0])
    key_for(settings, plan.manifest.endpoint.base_url)  # refuse before there are workers
    _check_free(root, count)
    line = tether() if watching.on_screen else UNTETHERED
    crew = RayCrew(address)
    run = FleetRun(crew, _fleet(plan, root), path.resolve(), shards, root)
    code = watch(run, settings, watching, line, lambda: None)
    if run.error is not None:
        raise run.error
    return code


def _count(options: Options, workers: int | None) -> int:
    if options.shard.partial:
        raise UsageError("--ray deals the shards itself: leave out --shard")
    if workers is None or workers < 2:  # noqa: PLR2004 - one worker is no fleet
        raise UsageError(
            "--ray needs --workers N, at least 2: the prompts are dealt to N for good",
            hint="One process takes thousands of requests in flight without Ray.",
        )
    return workers


def _check_free(root: Path, count: int) -> None:
    for number in range(1, count + 1):
        folder = root / shard_folder(number, count)
        if is_held(folder):
            raise RunHeldError(f"{folder}: another process is doing this shard")


def _fleet(plan: Plan, root: Path) -> Fleet:
    whole = plan.recorded
    budgets = {dataset.name: dataset.token_budget for dataset in whole.datasets}
    return Fleet(
        run=whole.run.name,
        datasets={
            each.name: Whole(each.whole or each.prompts, each.dataset.prompts, budgets[each.name])
            for each in plan.datasets
        },
        max_cost_usd=whole.limits.max_cost_usd,
        output=str(root),
        model=whole.endpoint.model,
        endpoint=whole.endpoint.base_url,
        ceiling=whole.limits.concurrency,
    )

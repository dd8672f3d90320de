"""Everything about a manifest that can be known before money is spent: `check`'s one entry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.checks.account import Account, account_findings, read_account
from engine.checks.budget import money_findings
from engine.checks.findings import Finding, exit_code, fail, ok
from engine.checks.local import find_vocabulary, folder_findings, machine_findings
from engine.checks.model import ModelEntry, model_findings, reach_findings, read_model
from engine.checks.money import Estimate, Need, estimate
from engine.checks.pages import Pages, read_pages
from engine.checks.parameters import asked_for, override_findings, spelling_findings
from engine.checks.pilot import Pilot, read_pilot
from engine.checks.route import Demand, Route, plan_route, route_findings
from engine.checks.rows import row_findings
from engine.checks.sources import Scan, Scanner, Window
from engine.checks.tokens import PromptCounter
from engine.disk.outfolder import obstacle, wanted_folder
from engine.errors import ExitCode, UsageError
from engine.manifest import Manifest
from engine.plan import DatasetPlan, Options
from engine.preflight import resolve_api
from engine.settings import Settings, key_for
from engine.wire.client import Client

KIMI_CONTEXT = 262_144
"""Tokens of context that every model of `kimi.VARIANTS` is published with."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the endpoint said of itself, taken apart."""

    pages: Pages
    account: Account
    model: ModelEntry
    demands: tuple[Demand, ...]
    route: Route
    key_given: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What `check` found; `findings` stand in the order in which things were looked at."""

    manifest: Manifest
    """With --base-url and --only applied."""
    plans: tuple[DatasetPlan, ...]
    folder: Path
    """The run directory."""
    offline: bool
    asked: Asked
    windows: tuple[Window, ...]
    pilots: tuple[Pilot, ...]
    scans: tuple[Scan, ...]
    estimate: Estimate
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> ExitCode:
        """0 where nothing fails, 2 for manifest and sources, 4 for the endpoint."""
        return exit_code(self.findings)


def check(
    manifest: Manifest,
    options: Options,
    settings: Settings,
    *,
    now: float,
    offline: bool = False,
    show: int = 0,
) -> Report:
    """Look at sources, endpoint and money; nothing is sent but GETs, and nothing with `offline`.

    `now` is epoch seconds, `show` how many prompts of each dataset the report holds as served.
    Raises UsageError for an option that does not fit the manifest; all else becomes a finding.
    """
    return _Checker(_with_options(manifest, options), options, settings, offline).report(show, now)


class _Checker:
    """One check: asks, scans, reckons, and then says what it found."""

    def __init__(
        self, manifest: Manifest, options: Options, settings: Settings, offline: bool
    ) -> None:
        self._manifest = manifest
        self._endpoint = manifest.endpoint
        self._options = options
        self._settings = settings
        self._offline = offline
        self._folder = wanted_folder(options.output, manifest.output_path)
        self._plans = tuple(_plan(manifest, options))
        self._concurrency = options.concurrency or manifest.limits.concurrency

    def report(self, show: int, now: float) -> Report:
        """Do everything, endpoint first: the context of its hosts is needed for the prompts."""
        asked = self._ask()
        vocabulary, tokenizer = find_vocabulary(self._manifest, self._settings)
        counter = PromptCounter(self._endpoint, vocabulary)
        windows = tuple(
            _window(plan, asked.route, self._endpoint.tokenizer) for plan in self._plans
        )
        pilots = tuple(self._pilots())
        scans = tuple(self._scan(counter, windows, pilots, show))
        reckoned = estimate(
            [
                _need(plan, scan, asked.route, pilot, thinking=self._endpoint.thinking)
                for plan, scan, pilot in zip(self._plans, scans, pilots, strict=True)
            ],
            max_cost_usd=self._manifest.limits.max_cost_usd,
            concurrency=self._concurrency,
        )
        found = [
            *self._manifest_findings(reckoned),
            *tokenizer,
            *self._source_findings(scans, windows, pilots),
            *self._endpoint_findings(asked, now),
            *self._money_findings(asked, reckoned),
        ]
        return Report(
            manifest=self._manifest,
            plans=self._plans,
            folder=self._folder,
            offline=self._offline,
            asked=asked,
            windows=windows,
            pilots=pilots,
            scans=scans,
            estimate=reckoned,
            findings=tuple(found),
        )

    def _pilots(self) -> Iterator[Pilot]:
        usable = not obstacle(self._folder)
        for plan in self._plans:
            yield read_pilot(self._folder / plan.name) if usable else Pilot()

    def _ask(self) -> Asked:
        endpoint = self._endpoint
        key, _ = _key(self._settings, endpoint.base_url)
        if self._offline:
            pages = Pages(api=resolve_api(endpoint, []))
        else:
            pages = asyncio.run(_pages(self._manifest, key))
        model = read_model(pages, endpoint)
        demands = tuple(
            Demand(plan.name, plan.max_tokens, asked_for(endpoint, plan.sampling))
            for plan in self._plans
        )
        return Asked(
            pages=pages,
            account=read_account(pages),
            model=model,
            demands=demands,
            route=plan_route(pages, model, endpoint, demands),
            key_given=key is not None,
        )

    def _scan(
        self,
        counter: PromptCounter,
        windows: tuple[Window, ...],
        pilots: tuple[Pilot, ...],
        show: int,
    ) -> Iterator[Scan]:
        scanner = Scanner(self._manifest, counter, limit=self._options.limit, show=show)
        for plan, window, pilot in zip(self._plans, windows, pilots, strict=True):
            hub = plan.dataset.source.startswith("hf:")
            yield scanner.scan(plan.dataset, window, pilot, read=not (hub and self._offline))

    def _manifest_findings(self, reckoned: Estimate) -> Iterator[Finding]:
        sampling = {plan.name: plan.sampling for plan in self._plans}
        yield from spelling_findings(self._endpoint, sampling)
        yield from override_findings(self._endpoint, sampling)
        yield from folder_findings(self._manifest, self._folder)
        yield from machine_findings(self._concurrency, self._folder, reckoned)

    def _source_findings(
        self, scans: tuple[Scan, ...], windows: tuple[Window, ...], pilots: tuple[Pilot, ...]
    ) -> Iterator[Finding]:
        short = self._options.allow_short
        for plan, scan, window, pilot in zip(self._plans, scans, windows, pilots, strict=True):
            yield from row_findings(scan, plan.dataset, window, pilot, allow_short=short)

    def _endpoint_findings(self, asked: Asked, now: float) -> Iterator[Finding]:
        pages, endpoint = asked.pages, self._endpoint
        _, problem = _key(self._settings, endpoint.base_url)
        if problem is not None:
            yield problem
        elif asked.key_given and pages.models_status is None:
            yield ok("endpoint", "key", "a key is set; it was not tried")
        if self._offline:
            yield ok("endpoint", "offline", "the endpoint was not asked (--offline)")
            return
        yield from reach_findings(pages, endpoint)
        if pages.models_status is None:
            return
        if problem is None:
            account, given = asked.account, asked.key_given
            yield from account_findings(account, pages, key_given=given, now=now)
        yield from model_findings(asked.model, pages, endpoint, now)
        if asked.model.listed is not False:
            yield from route_findings(asked.route, pages, endpoint, asked.demands)

    def _money_findings(self, asked: Asked, reckoned: Estimate) -> Iterator[Finding]:
        return money_findings(
            reckoned,
            max_cost_usd=self._manifest.limits.max_cost_usd,
            balance_usd=asked.account.balance_usd,
            paid=asked.pages.api == "openrouter"
            or (self._offline and self._endpoint.api == "auto"),
            asked=not self._offline,
        )


async def _pages(manifest: Manifest, key: str | None) -> Pages:
    endpoint = manifest.endpoint
    async with Client(endpoint.base_url, key=key, headers=endpoint.headers) as client:
        return await read_pages(client, endpoint)


def _with_options(manifest: Manifest, options: Options) -> Manifest:
    names = [dataset.name for dataset in manifest.datasets]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: no such dataset", hint=f"The manifest has {', '.join(names)}."
        )
    endpoint = manifest.endpoint
    if options.base_url is not None:
        endpoint = endpoint.at(options.base_url)
    chosen = tuple(d for d in manifest.datasets if not options.only or d.name in options.only)
    return manifest.model_copy(update={"endpoint": endpoint, "datasets": chosen})


def _plan(manifest: Manifest, options: Options) -> Iterator[DatasetPlan]:
    for dataset in manifest.datasets:
        stop = min(dataset.prompts, options.limit or dataset.prompts)
        yield DatasetPlan(dataset, dataset.prompts, stop, manifest.sampling_of(dataset))


def _window(plan: DatasetPlan, route: Route, tokenizer: str) -> Window:
    """The context of the hosts that may answer; where nobody says, the model's own."""
    own = None if tokenizer == "none" else KIMI_CONTEXT
    smallest, largest = route.offers[plan.name].context or (own, own)
    return Window(smallest, largest, plan.max_tokens)


def _need(plan: DatasetPlan, scan: Scan, route: Route, pilot: Pilot, *, thinking: bool) -> Need:
    return Need(
        name=plan.name,
        left=scan.left,
        generations=scan.generations,
        first_tokens=scan.tokens.first,
        later_tokens=scan.tokens.later,
        carried=scan.tokens.carried,
        max_turns=scan.max_turns,
        max_tokens=plan.max_tokens,
        token_budget=plan.dataset.token_budget,
        max_cost_usd=plan.dataset.max_cost_usd,
        offer=route.offers[plan.name],
        pilot=pilot,
        thinking=thinking,
    )


def _key(settings: Settings, base_url: str) -> tuple[str | None, Finding | None]:
    """The key that `run` would send, or why `run` would send nothing."""
    try:
        return key_for(settings, base_url), None
    except UsageError as error:
        # as with `run` it is the user's to mend before anybody is asked: exit 2, not 4
        return None, fail("manifest", "key", error.message, error.hint)

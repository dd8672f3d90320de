"""What `check` says of key, account, model and hosts, each played by the local provider."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest
from check_desk import NOW, failures, look, of, one, sources
from e2e_provider import playing

from engine.checks.account import account_findings, read_account
from engine.checks.findings import Level
from engine.checks.hosts import read_host
from engine.checks.model import lookalikes, model_findings, read_model
from engine.checks.pages import Page, Pages
from engine.checks.route import Demand, plan_route, route_findings
from engine.clock import iso
from engine.manifest import Endpoint

DAY = 86_400
MODEL = "moonshotai/kimi-k2.5"
ROWS = [{"prompt": f"Question {number}?"} for number in range(20)]


def checked(folder: Path, scenario: dict[str, Any], *, key: str | None = None, **more: Any) -> Any:
    """The report on twenty questions to a provider that plays this."""
    options = more.pop("options", {})
    with playing(**scenario) as provider:
        endpoint = {"base_url": provider.base_url} | more.pop("endpoint", {})
        manifest = sources(folder, ("A", ROWS), endpoint=endpoint, **more)
        report = look(manifest, key=key, **options)
        assert provider.ledger.requests == 0  # nothing but GETs
    return report


def test_a_sound_endpoint_has_no_failure(tmp_path: Path) -> None:
    report = checked(tmp_path, {"account": {"keys": ["sk-good"]}}, key="sk-good")
    assert report.exit_code == 0
    assert one(report, "key").text == "the key is accepted and has no limit of its own"
    assert one(report, "model").level is Level.OK
    assert one(report, "credits").text == "the account holds $1,000,000.00"


def test_a_wrong_key_fails(tmp_path: Path) -> None:
    report = checked(tmp_path, {"account": {"keys": ["sk-good"]}}, key="sk-wrong")
    assert failures(report) == ["key"]
    assert report.exit_code == 4
    assert "sk-wrong" not in repr(report)


def test_no_key_where_one_is_wanted_fails(tmp_path: Path) -> None:
    report = checked(tmp_path, {"account": {"keys": ["sk-good"]}})
    assert "none is set" in one(report, "key").text
    assert report.exit_code == 4


def test_openrouter_without_a_key_fails_before_anything_is_sent(tmp_path: Path) -> None:
    endpoint = {"base_url": "https://openrouter.ai/api/v1"}
    report = look(sources(tmp_path, ("A", ROWS), endpoint=endpoint), offline=True)
    assert failures(report) == ["key"]
    assert report.exit_code == 2, "as `run` does"


def test_a_used_up_key_fails(tmp_path: Path) -> None:
    report = checked(tmp_path, {"account": {"limit": 5.0, "total_usage": 5.0}}, key="sk-good")
    assert failures(report) == ["key"]
    assert "used up" in one(report, "key").text


def test_used_up_credits_fail(tmp_path: Path) -> None:
    report = checked(tmp_path, {"account": {"total_credits": 10.0, "total_usage": 10.0}})
    assert failures(report) == ["credits"]
    assert report.exit_code == 4


def test_credits_that_the_key_may_not_read_are_a_warning(tmp_path: Path) -> None:
    report = checked(
        tmp_path, {"account": {"credits_forbidden": True, "limit": 50.0}}, key="sk-good"
    )
    assert "HTTP 403" in one(report, "credits").text
    assert report.asked.account.balance_usd == 50.0
    assert report.exit_code == 0


def test_a_low_balance_says_how_much_it_holds(tmp_path: Path) -> None:
    scenario = {"account": {"total_credits": 0.2}}
    report = checked(tmp_path, scenario, sampling={"max_tokens": 8192}, limits={"concurrency": 20})
    finding = one(report, "concurrency")
    assert finding.level is Level.WARN
    assert "20 in flight reserve up to $0.4" in finding.text
    assert "holds 8 at most" in finding.text
    assert report.exit_code == 0


def test_a_balance_below_one_request_fails(tmp_path: Path) -> None:
    scenario = {"account": {"total_credits": 0.01}}
    report = checked(tmp_path, scenario, sampling={"max_tokens": 8192})
    assert failures(report) == ["balance"]
    assert report.exit_code == 4


def test_nobody_at_the_address_fails(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        report = look(sources(tmp_path, ("A", ROWS), endpoint={"base_url": url}))
    assert failures(report) == ["reachable"]
    assert report.exit_code == 4


def test_a_wrong_path_is_no_list_of_models(tmp_path: Path) -> None:
    with playing() as provider:
        url = provider.base_url.replace("/api/v1", "/api")
        report = look(sources(tmp_path, ("A", ROWS), endpoint={"base_url": url}))
    assert "HTTP 404" in one(report, "reachable").text


def test_a_missing_model_fails_and_names_what_is_near(tmp_path: Path) -> None:
    report = checked(tmp_path, {}, endpoint={"model": "moonshotai/kimi-k2.6"})
    assert failures(report) == ["model"]
    assert MODEL in one(report, "model").fix


@pytest.mark.parametrize("suffix", ["nitro", "floor"])
def test_a_routing_suffix_is_no_other_model(tmp_path: Path, suffix: str) -> None:
    report = checked(tmp_path, {}, endpoint={"model": f"{MODEL}:{suffix}"})
    assert one(report, "model").level is Level.OK
    assert len(report.asked.route.hosts) == 3


@pytest.mark.parametrize(
    ("date", "level"),
    [("2099-01-01", Level.OK), ("2026-12-20", Level.WARN), ("2026-08-31", Level.WARN)],
)
def test_a_model_that_sunsets(tmp_path: Path, date: str, level: Level) -> None:
    report = checked(tmp_path, {"expiration_date": date})
    finding = one(report, "model")
    assert finding.level is level
    assert date in finding.text


def test_no_route_fails_and_says_why_host_by_host(tmp_path: Path) -> None:
    endpoint = {"provider": {"only": ["elsewhere"], "quantizations": ["fp8"]}}
    report = checked(tmp_path, {}, endpoint=endpoint)
    assert failures(report) == ["routing"]
    assert report.exit_code == 4
    _, excluded = report.asked.route.hosts[0]
    assert excluded == {"A": "not in `only`; quantization int4 is not in `quantizations`"}
    assert any("elsewhere" in finding.text for finding in of(report, "routing"))


def test_max_tokens_above_every_host_is_no_route(tmp_path: Path) -> None:
    report = checked(tmp_path, {}, sampling={"max_tokens": 500_000})
    assert "routing" in failures(report)
    assert report.exit_code == 4


def test_only_one_dataset_without_a_route_is_named(tmp_path: Path) -> None:
    with playing() as provider:
        manifest = sources(
            tmp_path, ("A", ROWS), ("B", ROWS), endpoint={"base_url": provider.base_url}
        )
        text = manifest.read_text().rstrip() + "\nsampling = { max_tokens = 500000 }\n"
        manifest.write_text(text)
        report = look(manifest)
    (finding,) = (f for f in of(report, "routing") if f.level is Level.FAIL)
    assert finding.dataset == "B"


def test_a_context_too_small_for_every_prompt_fails(tmp_path: Path) -> None:
    host = {"name": "Small", "tag": "small", "context_length": 303}
    report = checked(tmp_path, {"providers": [host]}, sampling={"max_tokens": 300})
    assert failures(report) == ["context"]
    assert report.exit_code == 4


def test_a_context_that_only_some_hosts_have_is_a_warning(tmp_path: Path) -> None:
    hosts = [
        {"name": "Small", "tag": "small", "context_length": 303},
        {"name": "Large", "tag": "large"},
    ]
    report = checked(tmp_path, {"providers": hosts}, sampling={"max_tokens": 300})
    assert "20 prompts too long for some of the hosts" in one(report, "context").text
    assert report.exit_code == 0


def test_parameters_that_no_host_takes_are_named(tmp_path: Path) -> None:
    report = checked(tmp_path, {}, sampling={"max_tokens": 300, "min_p": 0.1})
    assert "takes min_p" in one(report, "parameters").text


def test_with_require_parameters_they_close_the_route(tmp_path: Path) -> None:
    endpoint = {"provider": {"require_parameters": True}}
    sampling = {"max_tokens": 300, "min_p": 0.1}
    report = checked(tmp_path, {}, endpoint=endpoint, sampling=sampling)
    assert failures(report) == ["routing"]


def test_misspelt_names_are_found_offline_too(tmp_path: Path) -> None:
    sampling = {"max_tokens": 300, "temprature": 1.0}
    endpoint = {"provider": {"allow_fallback": False}}
    manifest = sources(tmp_path, ("A", ROWS), sampling=sampling, endpoint=endpoint)
    report = look(manifest, offline=True)
    assert one(report, "parameters").fix == "Did you mean temperature?"
    assert one(report, "routing").fix == "Did you mean allow_fallbacks?"


def test_different_quantizations_are_different_teachers(tmp_path: Path) -> None:
    assert one(checked(tmp_path, {}), "quantization").level is Level.WARN


@pytest.mark.parametrize("api", ["vllm", "sglang"])
def test_a_server_of_ones_own_has_no_prices_and_no_hosts(tmp_path: Path, api: str) -> None:
    report = checked(tmp_path, {"api": api})
    assert report.exit_code == 0
    assert f"API: {api}" in one(report, "reachable").text
    assert "no prices" in one(report, "price").text
    assert report.windows[0].largest == 262_144


def test_routing_that_would_not_be_obeyed_fails(tmp_path: Path) -> None:
    report = checked(tmp_path, {"api": "vllm"}, endpoint={"provider": {"order": ["x"]}})
    assert report.exit_code == 2
    assert "would not be sent: this endpoint's API is vllm" in one(report, "routing").text


def test_a_model_that_vllm_does_not_serve_fails(tmp_path: Path) -> None:
    report = checked(tmp_path, {"api": "vllm"}, endpoint={"model": "other"})
    assert failures(report) == ["model"]


def test_a_model_that_sglang_does_not_list_may_still_be_served(tmp_path: Path) -> None:
    report = checked(tmp_path, {"api": "sglang"}, endpoint={"model": "other"})
    assert one(report, "model").level is Level.WARN


def entry(name: str, slug: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "canonical_slug": slug, "pricing": {"prompt": "0"}, **more}


def endpoint_of(**more: Any) -> Endpoint:
    return Endpoint(base_url="http://h/api/v1", model=MODEL, **more)


def test_a_dated_name_that_is_another_model_is_a_warning() -> None:
    listed = (
        entry(MODEL, f"{MODEL}-0127"),
        entry(f"{MODEL}-0127", f"{MODEL}-0127"),  # the canonical name itself
        entry(f"{MODEL}-0905", f"{MODEL}-0905"),
        entry(f"{MODEL}-turbo", f"{MODEL}-turbo"),
        entry(f"{MODEL}:free", f"{MODEL}-0127"),
    )
    pages = Pages(api="openrouter", models_status=200, models=listed)
    model = read_model(pages, endpoint_of())
    assert lookalikes(model, pages, endpoint_of()) == [f"{MODEL}-0905"]
    topics = [f.topic for f in model_findings(model, pages, endpoint_of(), NOW)]
    assert topics == ["model", "dated_name"]


@pytest.mark.parametrize(("days", "level"), [(-1, Level.FAIL), (2, Level.WARN)])
def test_a_key_that_expires(days: int, level: Level) -> None:
    page = Page(200, {"limit_remaining": None, "expires_at": iso(NOW + days * DAY)})
    pages = Pages(api="openrouter", models_status=200, key=page)
    found = account_findings(read_account(pages), pages, key_given=True, now=NOW)
    assert level in [finding.level for finding in found if finding.topic == "key_expiry"]


def test_the_free_tier_and_an_unreadable_key_page_are_warnings() -> None:
    free = Pages(api="openrouter", models_status=200, key=Page(200, {"is_free_tier": True}))
    dead = dataclasses.replace(free, key=Page(502))
    for pages, topic in ((free, "free_tier"), (dead, "key")):
        found = list(account_findings(read_account(pages), pages, key_given=True, now=NOW))
        assert [f.level for f in found if f.topic == topic] == [Level.WARN]


def host(tag: str, **more: Any) -> Any:
    prices = {"prompt": "0.0000005", "completion": "0.0000025"}
    return read_host({"provider_name": tag, "tag": tag, "pricing": prices, **more})


@pytest.mark.parametrize(
    ("hosts", "provider", "topic"),
    [
        ([host("a", status=-2), host("b", status=-5)], {}, "host_status"),
        ([host("a", status=0, context_length=8192)], {}, "compression"),
        ([host("a", status=0)], {"zdr": True}, "routing"),
        ([], {}, "hosts"),
    ],
)
def test_what_else_may_be_said_of_hosts(
    hosts: list[Any], provider: dict[str, Any], topic: str
) -> None:
    pages = Pages(
        api="openrouter", models_status=200, hosts_status=200 if hosts else 502, hosts=tuple(hosts)
    )
    endpoint = endpoint_of(provider=provider)
    demands = [Demand("A", 300)]
    route = plan_route(pages, read_model(pages, endpoint), endpoint, demands)
    found = list(route_findings(route, pages, endpoint, demands))
    assert [f.topic for f in found if f.level is Level.WARN] == [topic]

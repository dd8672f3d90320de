"""A report as one JSON object, for `check --json`: unknown is null, never 0."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from engine.checks.budget import assumptions
from engine.checks.check import Report
from engine.checks.hosts import PER_MILLION, Host
from engine.checks.money import Cases, Estimate, Need, Part
from engine.checks.sources import Scan


def report_record(report: Report, *, shown: bool) -> dict[str, Any]:
    """Tokens are counts, money USD, prices USD per million tokens, times seconds.

    `prompts` is there where they were asked for (--show).
    """
    levels = Counter(str(finding.level) for finding in report.findings)
    record: dict[str, Any] = {
        "run": report.manifest.run.name,
        "output": str(report.folder),
        "offline": report.offline,
        "exit_code": int(report.exit_code),
        "levels": {level: levels[level] for level in ("ok", "warn", "fail")},
        "findings": [asdict(finding) for finding in report.findings],
        "datasets": _datasets(report),
        "endpoint": None if report.offline else _endpoint(report),
        "estimate": _estimate(report),
    }
    if shown:
        record["prompts"] = [asdict(prompt) for scan in report.scans for prompt in scan.shown]
    return record


def _datasets(report: Report) -> list[dict[str, Any]]:
    reckoned = report.estimate
    return [
        {
            **_scan(scan),
            "turns": plan.dataset.turns,
            "max_tokens": plan.max_tokens,
            "token_budget": plan.dataset.token_budget,
            "max_cost_usd": plan.dataset.max_cost_usd,
            "context": {"smallest": window.smallest, "largest": window.largest},
            "rows_on_disk": pilot.ledger.rows,
            "estimate": _parts(need, parts),
        }
        for scan, plan, window, pilot, need, parts in zip(
            report.scans,
            report.plans,
            report.windows,
            report.pilots,
            reckoned.needs,
            zip(*reckoned.cases, strict=True),
            strict=True,
        )
    ]


def _scan(scan: Scan) -> dict[str, Any]:
    tokens = scan.tokens
    servable = scan.readable - scan.unservable
    return {
        "name": scan.name,
        "source": scan.source,
        "error": scan.error or None,
        "prompts": scan.prompts,
        "held": scan.held,
        "held_is_all": not scan.more,
        "left_out": None if scan.more else max(0, scan.held - scan.prompts),
        "rows": scan.rows,
        "readable": scan.readable,
        "invalid": scan.invalid,
        "invalid_rows": [
            {"line": row.line, "index": row.index, "reason": row.reason}
            for row in scan.invalid_first
        ],
        "unservable": scan.unservable,
        "generations": scan.generations,
        "generations_left": scan.left,
        "max_turns": scan.max_turns,
        "multi_turn": scan.multi_turn,
        "with_tools": scan.with_tools,
        "tool_message_rows": scan.tool_rows,
        "doubles": scan.doubles,
        "shared": scan.shared,
        "orphans": scan.orphans,
        "prompt_tokens": {
            "exact": scan.exact,
            "first_turns": tokens.first,
            "mean_first_turn": round(tokens.first / servable, 1) if servable else None,
            "longest": tokens.longest if servable else None,
            "longest_index": tokens.longest_index,
            "over_context": tokens.over_all,
            "over_smallest_context": tokens.over_some,
        },
    }


def _parts(need: Need, parts: tuple[Part, ...]) -> dict[str, Any]:
    low, middle, high = parts
    cases = {"low": low, "middle": middle, "high": high}
    return {
        "measured": need.measured,
        "generations": {name: part.generations for name, part in cases.items()},
        "completion_tokens": {name: round(part.completion_tokens) for name, part in cases.items()},
        "prompt_tokens": {name: round(part.prompt_tokens) for name, part in cases.items()},
        "cost_usd": _cases((low.cost_usd, middle.cost_usd, high.cost_usd)),
        "ends_by": {name: part.ends_by for name, part in cases.items()},
    }


def _endpoint(report: Report) -> dict[str, Any]:
    asked = report.asked
    every = len(report.plans)
    return {
        "base_url": report.manifest.endpoint.base_url,
        "reachable": asked.pages.models_status is not None,
        "api": asked.pages.api,
        "account": {**asdict(asked.account), "balance_usd": asked.account.balance_usd},
        "model": {"id": report.manifest.endpoint.model, **asdict(asked.model)},
        "hosts": [
            {**_host(host), "allowed": len(excluded) < every, "excluded": dict(excluded)}
            for host, excluded in asked.route.hosts
        ],
    }


def _host(host: Host) -> dict[str, Any]:
    return {
        "provider": host.provider,
        "tag": host.tag,
        "quantization": host.quantization,
        "context_length": host.context_length,
        "max_completion_tokens": host.max_completion_tokens,
        "prompt_usd_per_m": _per_million(host.prompt_usd),
        "completion_usd_per_m": _per_million(host.completion_usd),
        "status": host.status,
    }


def _estimate(report: Report) -> dict[str, Any]:
    reckoned: Estimate = report.estimate
    each, balance = reckoned.reserve_each_usd, report.asked.account.balance_usd
    return {
        "measured": reckoned.measured,
        "cost_usd": _cases(reckoned.cost_usd),
        "spent_usd": _usd(_spent(reckoned)),
        "ceiling_usd": _usd(reckoned.ceiling_usd),
        "max_cost_usd": report.manifest.limits.max_cost_usd,
        "duration_s": {
            name: round(seconds)
            for name, seconds in zip(("low", "middle", "high"), reckoned.duration_s, strict=True)
        },
        "concurrency": reckoned.concurrency,
        "reserve_each_usd": _usd(each),
        "reserve_usd": _usd(reckoned.reserve_usd),
        "balance_usd": _usd(balance),
        "balance_holds": None if balance is None or not each else int(balance / each),
        "assumptions": assumptions(reckoned),
    }


def _spent(reckoned: Estimate) -> float | None:
    """None where rows are on disk and none of them says what it cost."""
    ledgers = [need.pilot.ledger for need in reckoned.needs]
    silent = any(ledger.rows for ledger in ledgers) and not any(
        ledger.costs_known for ledger in ledgers
    )
    return None if silent else reckoned.spent_usd


def _cases(cases: Cases | tuple[float | None, ...] | None) -> dict[str, float | None] | None:
    if cases is None or any(usd is None for usd in cases):
        return None
    return {name: _usd(usd) for name, usd in zip(("low", "middle", "high"), cases, strict=True)}


def _usd(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)


def _per_million(usd: float | None) -> float | None:
    return None if usd is None else round(usd * PER_MILLION, 6)

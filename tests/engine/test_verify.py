"""The audit of a run directory: every structural fault is found, and nothing else is called one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from export_cases import kit_of, manifest, row_of, run_folder, said, user
from kimi_cases import ids

from engine.audits.survey import Kit, make_kit
from engine.audits.verify import Report, verify_run
from engine.audits.workers import Inline, workers
from engine.errors import UsageError
from engine.fleet.runs import open_runs

ENGINE = {"exactness": "engine"}


def audited(folder: Path, *, live: bool = False, kit: Kit | None = None) -> Report:
    return verify_run(folder, open_runs([folder]).manifest, Inline(kit or kit_of()), live=live)


def verified(folder: Path, *rows: dict[str, Any], **more: Any) -> Report:
    run_folder(folder, {"B6": rows})
    return audited(folder, **more)


def append(folder: Path, name: str, text: str | bytes) -> None:
    with (folder / "B6" / name).open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def faults(report: Report) -> list[tuple[str, str]]:
    assert report.fault_count == len(report.faults)
    return [(fault.place, fault.what) for fault in report.faults]


def test_a_run_in_order_has_no_fault_and_tells_its_numbers(tmp_path: Path) -> None:
    rows = [row_of(index=n) for n in range(5)]
    cut = row_of("It is", index=5, finish_reason="length", flags=["truncated"])
    again = row_of("Five.", index=4, turn=1, messages=(user("2+2?"), said("4"), user("More?")))
    again["id"] = rows[4]["id"].replace("#0", "#1")
    report = verified(tmp_path, *rows, cut, again)
    assert faults(report) == []
    (part,) = report.datasets
    assert (part.name, part.prompts, part.prompts_with_rows, part.tally.rows) == ("B6", 100, 6, 7)
    assert (part.requests, part.attempts, part.open, part.surplus) == (7, 0, 0, 0)
    assert part.tally.grades == {"matched": 7}
    assert part.tally.flags == {"truncated": 1}
    assert part.tally.finish_reasons == {"stop": 6, "length": 1}
    whole = sum(len(row["completion_ids"]) for row in (*rows, again))
    assert part.tally.exportable_tokens == whole
    assert part.tally.completion_tokens == whole + len(cut["completion_ids"])
    provider = report.providers["SiliconFlow"]
    assert (provider.tally.rows, provider.tally.sure) == (7, 7)


def _doubled(row: dict[str, Any]) -> list[Any]:
    return [row, row]


def _other_ids(row: dict[str, Any]) -> list[Any]:
    return [row | {"completion_ids": ids("Two and three.</think>It is 4.<|im_end|>")}]


def _unknown_id(row: dict[str, Any]) -> list[Any]:
    return [row | {"completion_ids": [*row["completion_ids"][:-1], 999_999]}]


def _other_prompt(row: dict[str, Any]) -> list[Any]:
    return [row | {"prompt_ids": ids("<|im_user|>user<|im_middle|>3+3?<|im_end|>")}]


def _no_ids(row: dict[str, Any]) -> list[Any]:
    return [row | {"completion_ids": None}]


def _miscounted(row: dict[str, Any]) -> list[Any]:
    return [row | {"usage": row["usage"] | {"completion_tokens": 3}}]


def _foreign(row: dict[str, Any]) -> list[Any]:
    return [row | {"id": row["id"].replace("B6/", "B7/")}]


@pytest.mark.parametrize(
    ("spoil", "line", "says"),
    [
        (_doubled, 2, "stands there twice"),
        (_other_ids, 1, "completion_ids do not decode to its text"),
        (_unknown_id, 1, "completion_ids do not decode to its text"),
        (_other_prompt, 1, "prompt_ids do not decode to its messages"),
        (_no_ids, 1, "graded matched, but it has no completion_ids"),
        (_miscounted, 1, "the server counted 3"),
        (_foreign, 1, "belongs to another dataset"),
    ],
)
def test_a_row_that_says_something_else_than_it_claims(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], list[Any]], line: int, says: str
) -> None:
    good = [row_of(index=n) for n in (1, 2)]
    found = [f for f in faults(verified(tmp_path, *spoil(row_of()), *good)) if "/rows" in f[0]]
    assert len(found) == 1, found
    assert found[0][0] == f"B6/rows.jsonl:{line}"
    assert says in found[0][1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{}\n", "id is missing"),
        (b"not json\n", "no JSON"),
        (b"\xff\xfe\n", "no JSON"),
        (b"\n", "no JSON"),
        (b"[1]\n", "no row"),
        (b'{"id": "B6/0123456789abcdef.0#0", "mess', "torn"),
    ],
)
def test_lines_that_are_no_rows(tmp_path: Path, text: bytes, says: str) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    append(tmp_path, "rows.jsonl", text)
    (found,) = faults(audited(tmp_path))
    assert found[0] == "B6/rows.jsonl:2"
    assert says in found[1]


@pytest.mark.parametrize("name", ["sent.jsonl", "attempts.jsonl", "failures.jsonl"])
def test_torn_and_unreadable_lines_of_the_other_files(tmp_path: Path, name: str) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    place = f"B6/{name}"
    before = 1 if name == "sent.jsonl" else 0
    append(tmp_path, name, b'nonsense\n{"id": "B6/01')
    found = faults(audited(tmp_path))
    assert found == [
        (f"{place}:{before + 1}", "a line that is no record"),
        (f"{place}:{before + 2}", "a torn last line"),
    ]


def test_a_live_run_is_judged_by_its_whole_lines(tmp_path: Path) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    for name in ("rows.jsonl", "sent.jsonl"):
        append(tmp_path, name, b'{"id": "B6/01')
    report = audited(tmp_path, live=True)
    assert faults(report) == []
    assert report.live
    assert report.datasets[0].tally.rows == 1


def test_outcomes_are_counted_against_requests(tmp_path: Path) -> None:
    rows = [row_of(index=n) for n in range(3)]
    run_folder(tmp_path, {"B6": rows})
    open_ = {"id": "B6/0123456789abcdef.0#0", "attempt": 1, "at": "2026-11-30T14:03:22.125Z"}
    append(tmp_path, "sent.jsonl", json.dumps(open_) + "\n")
    report = audited(tmp_path)
    assert faults(report) == []
    assert (report.datasets[0].requests, report.datasets[0].open) == (4, 1)
    attempt = {"id": rows[0]["id"], "attempt": 2, "family": "rate_limit"}
    append(tmp_path, "attempts.jsonl", (json.dumps(attempt) + "\n") * 2)
    (found,) = faults(audited(tmp_path))
    assert found == ("B6/sent.jsonl", "1 rows and attempts are of no request in it")


def test_failures_count_prompts_that_have_no_later_row(tmp_path: Path) -> None:
    row = row_of()
    run_folder(tmp_path, {"B6": [row]})
    other = row["id"].replace("#0", "#1")
    records = [
        {"id": row["id"], "family": "x"},
        {"id": other, "family": "x"},
        {"id": other, "family": "y"},
        *[{"id": None, "family": "invalid_row", "index": 3, "message": "line 4: no"}] * 2,
    ]
    append(tmp_path, "failures.jsonl", "".join(json.dumps(r) + "\n" for r in records))
    part = audited(tmp_path).datasets[0]
    assert (part.failed, part.invalid) == (1, 1)


def test_status_must_add_up_and_may_not_count_rows_that_are_gone(tmp_path: Path) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    view = {"name": "B6", "prompts": 100, "ok": 1, "failed": 0, "invalid": 0, "in_flight": 0}

    def status(**more: Any) -> list[tuple[str, str]]:
        record = {"datasets": [view | {"left": 99, "rows": 1} | more]}
        (tmp_path / "status.json").write_text(json.dumps(record))
        return faults(audited(tmp_path))

    assert status() == []
    assert status(rows=2) == [("status.json", "B6: it counted 2 rows, 1 are on disk")]
    (found,) = status(left=98)
    assert "are not 100 prompts" in found[1]
    (tmp_path / "status.json").write_text("{torn")
    assert faults(audited(tmp_path)) == []


def test_what_a_changed_manifest_leaves_is_told_and_is_no_fault(tmp_path: Path) -> None:
    other = row_of(dataset="B3")
    run_folder(tmp_path, {"B6": [row_of(index=n) for n in range(3)], "B3": [other]})
    shorter = manifest(tmp_path, {"B6": 2})
    report = verify_run(tmp_path, shorter, Inline(kit_of()), live=False)
    assert faults(report) == []
    assert [(part.name, part.prompts) for part in report.datasets] == [("B6", 2), ("B3", None)]
    assert report.datasets[0].surplus == 1
    assert report.datasets[1].tally.rows == 1


def test_lines_moved_aside_by_a_resume_are_told(tmp_path: Path) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    append(tmp_path, "rows.jsonl.torn", b'{"id": "B6/01\n')
    report = audited(tmp_path)
    assert (faults(report), report.datasets[0].set_aside) == ([], 1)


def test_ids_from_a_server_are_checked_against_text_and_count(tmp_path: Path) -> None:
    split = ids("Tw") + ids("o and two.</think>It is 4.<|im_end|>")
    usage = {"prompt_tokens": 9, "completion_tokens": len(split)}
    sampled = row_of(index=1) | ENGINE | {"completion_ids": split, "usage": usage}
    injected = row_of(index=2) | ENGINE
    injected["prompt_ids"] = [*ids("<|im_system|>system<|im_middle|>S<|im_end|>"), 1]
    odd = row_of(index=3) | ENGINE | {"usage": {"completion_tokens": 3}}
    report = verified(tmp_path, sampled, injected, odd)
    assert faults(report) == []
    tally = report.providers["SiliconFlow"].tally
    assert (tally.sure, tally.other_prompt, tally.miscounted) == (3, 1, 1)
    assert report.datasets[0].tally.grades == {"engine": 3}


def test_ids_from_a_server_that_are_of_another_text_are_a_fault(tmp_path: Path) -> None:
    (found,) = faults(verified(tmp_path, row_of() | ENGINE | {"completion_ids": ids("No.")}))
    assert "do not decode to its text" in found[1]


def test_doubtful_rows_are_graded_and_are_no_faults(tmp_path: Path) -> None:
    lost = row_of("caf\ufffd", index=1, exactness="mismatch")
    half = row_of("half \ud83d", index=2, completion_ids=None, exactness="mismatch")
    uncounted = row_of(index=3, exactness="unverified")
    uncounted["usage"] = {"completion_tokens": None}
    report = verified(tmp_path, lost, half, uncounted)
    assert faults(report) == []
    assert report.datasets[0].tally.grades == {"mismatch": 2, "unverified": 1}


def test_without_a_vocabulary_grades_are_taken_as_they_stand(tmp_path: Path) -> None:
    kit = kit_of(tokenizer="none")
    run_folder(tmp_path, {"B6": [row_of(kit=kit)]}, endpoint='tokenizer = "none"')
    report = audited(tmp_path, kit=kit)
    assert faults(report) == []
    assert report.datasets[0].tally.grades == {"unverified": 1}


def test_a_provider_that_injects_a_prompt_is_named(tmp_path: Path) -> None:
    rows = [row_of(index=n) for n in range(12)]
    for row in rows:
        row["usage"]["prompt_tokens"] = len(row["prompt_ids"]) + 18
    words = verified(tmp_path, *rows).providers["SiliconFlow"].prompt_words
    assert words == "adds 18 prompt tokens: the old default system prompt"


def test_many_faults_are_all_counted(tmp_path: Path) -> None:
    run_folder(tmp_path, {"B6": [row_of()]})
    append(tmp_path, "rows.jsonl", "x\n" * 3000)
    report = audited(tmp_path)
    assert (report.fault_count, len(report.faults)) == (3000, 1000)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run directory"):
        open_runs([tmp_path])
    (tmp_path / "run.json").write_text(json.dumps({"manifest": {"run": {"name": ""}}}))
    with pytest.raises(UsageError, match=r"manifest\.run\.name"):
        open_runs([tmp_path])


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    rows = [row_of(index=n) for n in range(300)]
    rows[7] = rows[7] | {"completion_ids": ids("No.<|im_end|>")}
    manifested = run_folder(tmp_path, {"B6": rows, "B3": [row_of(dataset="B3")]})
    with workers(partial(make_kit, manifested.endpoint), 2) as work:
        shared = verify_run(tmp_path, manifested, work, live=False)
    assert shared == verify_run(tmp_path, manifested, Inline(kit_of()), live=False)
    assert {fault.place for fault in shared.faults} == {"B6/rows.jsonl:8"}

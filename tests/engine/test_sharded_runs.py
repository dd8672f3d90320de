"""`--shard I/N` on a real provider: shards never overlap, and are read as one run afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_files import RunFiles, assert_accounted
from e2e_provider import playing

from engine.errors import IdentityError, UsageError
from engine.fleet.neighbours import check_shard, place_of
from engine.fleet.runs import open_runs

PROMPTS, INVALID, OTHERS = 90, 7, 40


def lay(desk: Desk, **sections: dict[str, object]) -> Path:
    """Two datasets; every fourteenth row of the first is not readable."""
    asked = [{"prompt": f"Question {n}?"} if n % 14 else b"{" for n in range(PROMPTS)]
    talks = [{"turns": [f"First {n}", "More?"]} for n in range(OTHERS)]
    return desk.manifest(
        {"name": "A", "source": desk.source("a.jsonl", asked), "prompts": PROMPTS},
        {"name": "B", "source": desk.source("b.jsonl", talks), "prompts": OTHERS},
        **{"limits": {"concurrency": 8, "max_cost_usd": 10.0}, **sections},
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Three shards, each run to its end."""
    folder = tmp_path_factory.mktemp("shards")
    with playing() as provider, Desk(folder, provider.base_url) as desk:
        lay(desk)
        for index in (1, 2, 3):
            result = desk.go("--headless", "--shard", f"{index}/3")
            assert result.code == 3, result.err  # there are unreadable rows
            assert f" of {PROMPTS} (" in result.err
        yield desk


def shards(desk: Desk) -> list[RunFiles]:
    return [RunFiles(desk.folder / "out" / f"shard-{index}-of-3") for index in (1, 2, 3)]


def test_every_prompt_is_dealt_to_one_shard(desk: Desk) -> None:
    ids = [row["id"] for files in shards(desk) for row in files.all("rows")]
    assert len(ids) == len(set(ids)) == PROMPTS - INVALID + 2 * OTHERS
    for files in shards(desk):
        assert_accounted(files)
        assert len(files.lines("A/rows.jsonl")) > 10


def test_the_totals_of_the_shards_sum_to_the_manifests(desk: Desk) -> None:
    views = [view for files in shards(desk) for view in files.status()["datasets"]]
    assert sum(view["prompts"] for view in views if view["name"] == "A") == PROMPTS
    assert sum(view["invalid"] for view in views) == INVALID
    assert sum(view["prompts"] for view in views if view["name"] == "B") == OTHERS
    assert {view["left"] for view in views} == {0}


def test_each_shard_journals_its_share(desk: Desk) -> None:
    told = [entry["text"] for files in shards(desk) for entry in files.events("note")]
    assert "shard 1 of 3: its share is 3 of 8 in flight, $3.34 of $10.00" in told
    assert "shard 3 of 3: its share is 2 of 8 in flight, $3.33 of $10.00" in told


def test_a_shard_goes_on_where_it_ended(desk: Desk) -> None:
    before = len(shards(desk)[0].all("sent"))
    result = desk.go("--headless", "--shard", "1/3")
    assert result.code == 3
    assert len(shards(desk)[0].all("sent")) == before
    assert_accounted(shards(desk)[0])
    assert "changed since" not in result.err


def test_another_shard_in_its_folder_is_refused(desk: Desk) -> None:
    folder = desk.folder / "out" / "shard-1-of-3"
    result = desk.go("--headless", "--shard", "2/3", "--output", folder)
    assert result.code == 2
    assert "holds shard 1 of 3, and this is shard 2 of 3" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--shard", "1/4"), "dealt to 4, its prompts would be paid twice"),
        ((), "holds shards of a run dealt to 3; its prompts would be paid twice"),
        (("--shard", "0/3"), "I from 1 to N"),
        (("--shard", "١/٣"), "I from 1 to N"),  # noqa: RUF001 - digits, not in ASCII
        (("--shard", "1/" + "9" * 5000), "I from 1 to N"),
        (("--shard", "4/3"), "I from 1 to N"),
    ],
)
def test_what_would_be_paid_twice_is_refused(
    desk: Desk, options: tuple[str, ...], words: str
) -> None:
    result = desk.go("--headless", *options)
    assert result.code == 2
    assert words in result.err


def test_a_shard_beside_a_whole_run_is_refused(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(4)
        assert desk.go("--headless").code == 0
        result = desk.go("--headless", "--shard", "1/2")
        assert result.code == 2
        assert "holds a run that is not sharded" in result.err


def test_status_of_all_is_one_run(desk: Desk) -> None:
    result = desk.run("status", desk.folder / "out")
    assert result.code == 0
    assert result.out.startswith("e2e  done\n")
    assert "shard 2/3  done, heartbeat" in result.out
    assert f"A · {PROMPTS} prompts: done, {PROMPTS - INVALID} ok, 0 failed, 7 invalid" in result.out
    record = desk.run("status", *(files.folder for files in shards(desk)), "--json").summary
    assert [view["prompts"] for view in record["datasets"]] == [PROMPTS, OTHERS]
    assert [view["left"] for view in record["datasets"]] == [0, 0]
    assert [shard["label"] for shard in record["shards"]] == [f"shard {i}/3" for i in (1, 2, 3)]
    assert record["max_cost_usd"] == 10.0


def test_a_missing_shard_is_named_and_its_prompts_are_left(desk: Desk) -> None:
    some = [files.folder for files in shards(desk)[:2]]
    result = desk.run("status", *some)
    assert "shard 3/3: is not among the folders given" in result.out
    record = desk.run("status", *some, "--json").summary
    third = shards(desk)[2].status()["datasets"]
    assert [v["left"] for v in record["datasets"]] == [v["prompts"] for v in third]
    left = sum(view["prompts"] for view in third)
    assert {view["state"] for view in record["datasets"]} == {"running"}
    assert f"A · {PROMPTS} prompts: stopped, " in result.out
    verified = desk.run("verify", *some)
    assert verified.code == 3
    assert "✗ shard 3/3 is not among the folders given\n" in verified.out
    assert f"✗ {left} of {PROMPTS + OTHERS} prompts are not there" in verified.out


def test_a_shard_without_a_folder_is_named_with_where_it_should_be(
    desk: Desk, tmp_path: Path
) -> None:
    root = tmp_path / "out"
    shutil.copytree(desk.folder / "out", root)
    shutil.rmtree(root / "shard-2-of-3")
    left = sum(view["prompts"] for view in shards(desk)[1].status()["datasets"])
    assert f"shard 2/3: has no folder in {root}" in desk.run("status", root).out
    assert f"✗ shard 2/3 has no folder in {root}" in desk.run("verify", root).out
    out = ("--out", tmp_path / "x.jsonl")
    told = desk.run("export", root, "--to", "automodel", "--include", "unverified", *out)
    assert told.code == 0
    assert f"note: shard 2/3 has no folder in {root}\n" in told.err
    assert f"note: {left} of {PROMPTS + OTHERS} prompts are not there\n" in told.err


@pytest.mark.parametrize(
    "change",
    [
        *({"index": odd} for odd in ("x", None, [], -1, 0, 1e99, True, 4)),
        *({"count": odd} for odd in ("x", None, [], -1, 0, 1e99, True)),
        {"prompts": []},
        {"prompts": {"A": "x"}},
    ],
)
def test_an_odd_shard_record_is_refused_in_words(
    desk: Desk, tmp_path: Path, change: dict[str, object]
) -> None:
    folder = tmp_path / "shard-1-of-3"
    shutil.copytree(shards(desk)[0].folder, folder)
    record = json.loads((folder / "run.json").read_bytes())
    record["shard"] |= change
    (folder / "run.json").write_text(json.dumps(record))
    for command in (("verify", folder), ("status", folder, shards(desk)[1].folder)):
        result = desk.run(*command)
        assert result.code == 2
        assert f"{folder / 'run.json'} is not readable as a run's record: its shard is" in (
            result.err
        )


@pytest.mark.parametrize("identity", [5, [1], "x", {"datasets": 3}])
def test_an_odd_identity_is_refused_in_words(desk: Desk, tmp_path: Path, identity: object) -> None:
    folder = tmp_path / "shard-1-of-3"
    shutil.copytree(shards(desk)[0].folder, folder)
    record = json.loads((folder / "run.json").read_bytes()) | {"identity": identity}
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match="it holds no identity of a run"):
        open_runs([folder, shards(desk)[1].folder])


def test_two_shards_with_one_output_do_not_collide(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(12)
        there = tmp_path / "there"
        for _ in range(2):
            codes = [
                desk.go("--headless", "--shard", f"{i}/2", "--output", there).code for i in (1, 2)
            ]
            assert codes == [0, 0]
        files = [RunFiles(there / f"shard-{i}-of-2") for i in (1, 2)]
        assert sum(len(each.all("rows")) for each in files) == 12
        assert sorted(path.name for path in there.iterdir()) == ["shard-1-of-2", "shard-2-of-2"]
        texts = [entry["text"] for each in files for entry in each.events("note")]
        assert not [text for text in texts if "no longer in its source" in text]


def test_what_a_mistaken_share_left_blocks_nothing(desk: Desk, tmp_path: Path) -> None:
    root = tmp_path / "out"
    shutil.copytree(desk.folder / "out", root)
    odd = root / "shard-1-of-4"
    odd.mkdir()
    record = json.loads((root / "shard-1-of-3/run.json").read_bytes())
    record["shard"]["count"] = 4
    (odd / "run.json").write_text(json.dumps(record))
    assert place_of(root, 2, 3) == root / "shard-2-of-3"
    check_shard(root, 3)
    assert len(open_runs([root]).runs) == 3
    (odd / "A").mkdir()
    (odd / "A/sent.jsonl").write_text("{}\n")
    with pytest.raises(IdentityError, match=r"holds shard-1-of-4; dealt to 3") as caught:
        check_shard(root, 3)
    assert f"move {odd} to another place" in str(caught.value.hint)


def test_one_shard_by_itself_is_shown_by_itself(desk: Desk) -> None:
    result = desk.run("status", shards(desk)[1].folder)
    assert result.out.startswith("e2e shard 2/3  done\n")


def test_verify_of_all(desk: Desk) -> None:
    result = desk.run("verify", desk.folder / "out")
    assert result.code == 0
    assert (
        f"A · {PROMPTS} prompts: {PROMPTS - INVALID} with rows, 0 failed, 7 invalid" in result.out
    )
    assert "✓ no row is in two of them" in result.out
    record = desk.run("verify", desk.folder / "out", "--json").summary
    assert [part["rows"] for part in record["datasets"]] == [PROMPTS - INVALID, 2 * OTHERS]
    assert (record["overlaps"], record["fault_count"], len(record["runs"])) == ([], 0, 3)


def test_a_row_in_two_shards_is_a_fault(desk: Desk, tmp_path: Path) -> None:
    root = tmp_path / "out"
    shutil.copytree(desk.folder / "out", root)
    row = shards(desk)[0].lines("A/rows.jsonl")[0]
    with (root / "shard-2-of-3/A/rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    result = desk.run("verify", root)
    assert result.code == 3
    assert f"both hold 1 row, such as {row['id']}" in result.out
    out = tmp_path / "x.jsonl"
    refused = desk.run("export", root, "--to", "automodel", "--out", out)
    assert refused.code == 2
    assert f"both hold 1 row, such as {row['id']}" in refused.err
    assert not out.exists()


def test_what_does_not_go_together_is_refused(desk: Desk, tmp_path: Path) -> None:
    first = shards(desk)[0].folder
    copy = tmp_path / "copy"
    shutil.copytree(first, copy)
    with pytest.raises(UsageError, match="are both shard 1/3: rows would count double"):
        open_runs([first, copy])
    with pytest.raises(UsageError, match="is named twice"):
        open_runs([first, first])
    whole = tmp_path / "whole"
    with playing() as provider, Desk(tmp_path, provider.base_url) as other:
        other.asking(2, run={"output": "whole"})
        assert other.go("--headless").code == 0
    with pytest.raises(UsageError, match=r"one of 3 shards, .* is a whole run"):
        open_runs([first, whole])
    record = json.loads((copy / "run.json").read_bytes())
    record["identity"]["model"] = "another/model"
    record["shard"]["index"] = 2
    (copy / "run.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match="another identity:\n  model: was"):
        open_runs([first, copy])
    with pytest.raises(UsageError, match="is no run directory"):
        open_runs([tmp_path / "nothing"])


def test_whole_runs_of_one_identity_are_taken_as_one(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        for name, count in (("A", 3), ("B", 5)):
            desk.asking(count, name, run={"name": name, "output": f"runs/{name}"})
            assert desk.go("--headless").code == 0
        folders = [tmp_path / "runs" / name for name in "AB"]
        record = desk.run("status", *folders, "--json").summary
        assert [(v["name"], v["prompts"], v["ok"]) for v in record["datasets"]] == [
            ("A", 3, 3),
            ("B", 5, 5),
        ]
        assert desk.run("verify", *folders).code == 0


def test_attach_to_several_is_read_only(desk: Desk) -> None:
    result = desk.run("attach", desk.folder / "out")
    assert result.code == 2
    assert "add --read-only" in result.err


def test_an_order_to_shards_that_have_ended(desk: Desk) -> None:
    result = desk.run("control", desk.folder / "out", "pause")
    assert result.code == 2
    assert "no process does this run" in result.err


def test_a_pilot_is_dealt_too_and_goes_on_later(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(60)
        files = [RunFiles(tmp_path / "out" / f"shard-{index}-of-2") for index in (1, 2)]
        for limit, rows in ((("--limit", 20), 20), ((), 60)):
            codes = [desk.go("--headless", "--shard", f"{i}/2", *limit).code for i in (1, 2)]
            assert codes == [0, 0]
            assert sum(len(each.all("rows")) for each in files) == rows
            views = [each.status()["datasets"][0] for each in files]
            assert sum(view["left"] for view in views) == 60 - rows
        for each in files:
            assert_accounted(each)

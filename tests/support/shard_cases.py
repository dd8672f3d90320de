"""Run directories as the shards of one run: dealt by hand from a whole one, or made by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any


def split(whole: Path, root: Path, count: int) -> list[Path]:
    """The rows of a whole run dealt to shards, as `run --shard` would have done them."""
    return [_shard(whole, root, index, count) for index in range(1, count + 1)]


def _shard(whole: Path, root: Path, index: int, count: int) -> Path:
    folder = root / f"shard-{index}-of-{count}"
    shutil.copytree(whole, folder)
    for name in ("status.json", "run.lock"):
        (folder / name).unlink(missing_ok=True)
    record = json.loads((folder / "run.json").read_bytes())
    totals = {dataset["name"]: dataset["prompts"] for dataset in record["manifest"]["datasets"]}
    record["shard"] = {"index": index, "count": count, "prompts": totals}
    (folder / "run.json").write_text(json.dumps(record))
    kept: set[tuple[str, int]] = set()
    for path in folder.glob("*/rows.jsonl"):
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        mine = [row for row in rows if int(row["prompt_hash"][-8:], 16) % count == index - 1]
        kept |= {(row["id"], row["attempts"]) for row in mine}
        _write(path, mine)
    for path in folder.glob("*/sent.jsonl"):
        sent = [json.loads(line) for line in path.read_bytes().splitlines()]
        _write(path, [record for record in sent if (record["id"], record["attempt"]) in kept])
    return folder


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))

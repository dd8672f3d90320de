from __future__ import annotations

import re
import stat
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from engine.errors import ExitCode, UsageError
from engine.feed.sources import PromptFeed
from engine.manifest import Dataset, Endpoint, Limits, RunSection, load_manifest, parse_manifest
from engine.settings import load_settings
from tui.starter import write_starter

WRITTEN = ("manifest.toml", "prompts/sample.jsonl", ".env", ".gitignore")


def manifest_text() -> str:
    return files("tui.starter").joinpath("data", "manifest.toml").read_text(encoding="utf-8")


def test_it_writes_the_four_files_and_makes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "project"
    assert write_starter(folder) == [folder / name for name in WRITTEN]
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == (
        sorted(WRITTEN)
    )


def test_the_keys_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    write_starter(tmp_path)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", WRITTEN)
def test_an_existing_file_is_named_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match=re.escape(str(mine))) as caught:
        write_starter(tmp_path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert mine.read_text() == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_a_dangling_link_counts_as_existing(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"\.env"):
        write_starter(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_the_folders_place_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="taken"):
        write_starter(tmp_path / "taken")


def test_the_manifest_can_be_run_as_it_is_written(tmp_path: Path) -> None:
    write_starter(tmp_path)
    manifest = load_manifest(tmp_path / "manifest.toml")
    [dataset] = manifest.datasets
    rows = PromptFeed(manifest, dataset, stop=1000).batch(1000)
    assert len(rows) == dataset.prompts == 12
    assert all(hasattr(row, "hash") for row in rows), "every sample prompt is readable"
    assert manifest.output_path == tmp_path / "runs" / "my-first-run"


def test_the_sample_prompts_show_every_row_form(tmp_path: Path) -> None:
    write_starter(tmp_path)
    text = (tmp_path / "prompts" / "sample.jsonl").read_text(encoding="utf-8")
    for form in ("messages", "conversations", "prompt", "question", "instruction", "turns"):
        assert f'"{form}": ' in text
    assert '"tools": ' in text


def test_the_manifest_explains_every_key_there_is() -> None:
    sections = {
        "run": RunSection,
        "endpoint": Endpoint,
        "limits": Limits,
        "datasets": Dataset,
    }
    section, explained = "", {name: set[str]() for name in sections}
    for line in manifest_text().splitlines():
        if header := re.match(r"\[+([\w.]+)\]+", line):
            section = header[1]
        if key := re.match(r"(?:# )?(\w+) = .+? +# \w", line):
            explained.setdefault(section, set()).add(key[1])
    for name, model in sections.items():
        keys = set(model.model_fields) - {"provider"}  # a table of its own
        assert keys <= explained[name], name
    assert {"order", "allow_fallbacks"} <= explained["endpoint.provider"]


def test_the_commented_vllm_endpoint_is_valid_too(tmp_path: Path) -> None:
    text = manifest_text()
    hosted = text[text.index("[endpoint]") : text.index("# A vLLM server")]
    local = text[text.index("# [endpoint]") : text.index("[sampling]")]
    uncommented = "\n".join(line.removeprefix("# ") for line in local.splitlines())
    swapped = text.replace(hosted, "").replace(local, uncommented + "\n")
    manifest = parse_manifest(swapped, tmp_path / "manifest.toml")
    assert manifest.endpoint.api == "vllm"
    assert manifest.endpoint.provider == {}


def test_the_unfilled_keys_file_gives_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENROUTER_API_KEY", "EAGLEGEN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_starter(tmp_path)
    settings = load_settings(tmp_path)
    assert not any(
        key and key.get_secret_value() for key in (settings.api_key, settings.openrouter_api_key)
    )
    filled = (tmp_path / ".env").read_text().replace("ROUTER_API_KEY=", "ROUTER_API_KEY=abc")
    (tmp_path / ".env").write_text(filled)
    key = load_settings(tmp_path).openrouter_api_key
    assert key is not None
    assert key.get_secret_value() == "abc"


def test_the_manifest_is_plain_toml() -> None:
    assert set(tomllib.loads(manifest_text())) == {
        "run",
        "endpoint",
        "sampling",
        "limits",
        "datasets",
    }

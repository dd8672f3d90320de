"""What may be imported where: a command line that starts at once, an engine without a screen."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"textual", "rich", "tiktoken", "splintr", "httpx", "httpx_aiohttp", "aiohttp", "pydantic"}
SCREEN = {"textual", "tui", "themes"}
PURE = [
    *("manifest", "tomlplace", "schedule", "course", "commands", "events", "format"),
    *("feed/prompts", "disk/records", "disk/entries", "wire/request", "wire/reply"),
    *("money/budget", "money/price", "money/resend", "view/series", "view/snapshot"),
    *("pace", "faults", "verdicts"),
]
"""Policy decides and asks nobody: no time, no randomness of its own, no files, no network."""
IMPURE = {"time", "os", "logging", "socket", "asyncio", "threading", "httpx", "aiohttp", "aiofiles"}


def loaded_by(statement: str) -> set[str]:
    """Top-level packages in a fresh interpreter after a statement."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def modules(package: str) -> list[str]:
    folder = ROOT / package
    found = []
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found.append(name.removesuffix(".__init__"))
    return [name for name in found if not name.endswith("__main__")]


def test_the_command_line_imports_nothing_heavy_before_a_command_needs_it() -> None:
    assert not loaded_by("import tui.cli") & HEAVY


def test_the_engine_knows_no_screen() -> None:
    statement = "\n".join(f"import {name}" for name in modules("engine"))
    assert not loaded_by(statement) & SCREEN


def test_themes_are_data_that_import_nothing() -> None:
    assert not loaded_by("import themes") & (HEAVY | {"engine", "tui", "typer"})


def test_the_http_client_comes_with_the_client_module_only() -> None:
    http = {"httpx", "httpx_aiohttp"}
    names = [name for name in modules("engine") if not name.startswith("engine.simulator")]
    owners = [name for name in names if imported(ROOT / Path(*name.split("."))) & http]
    assert owners == ["engine.wire.client"]


def imported(module: Path) -> set[str]:
    """Packages that a module names in its own import statements."""
    path = module.with_suffix(".py") if not module.is_dir() else module / "__init__.py"
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("name", PURE)
def test_policy_is_pure(name: str) -> None:
    place = ROOT / "engine" / name
    files = sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    assert files
    for path in files:
        assert not imported(path.with_suffix("")) & IMPURE, path.name

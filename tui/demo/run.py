"""`eaglegen-tui demo`: the local provider in a process of its own, and the main job against it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.errors import EaglegenError
from engine.manifest import load_manifest
from engine.plan import Options, make_plan
from engine.settings import Settings, load_settings
from tui.demo.prompts import DemoDataset, write_sources
from tui.detach import UNTETHERED, tether
from tui.jobs import Watching, check_look, perform

DEFAULT_SCALE = 0.1
"""3,777 prompts: about two minutes."""
CONCURRENCY = 200
_NOT_KEPT = "A demo's folder goes when it ends; `demo --output DIR` keeps it."
_BUDGET_TOKENS = 20_000_000
_MANIFEST = """\
# The demo: the story, {share} of its size, on a local provider.
[run]
name = "demo"
output = "run"

[endpoint]
base_url = "{base_url}"
model = "moonshotai/kimi-k2.5"
tokenizer = "kimi-k2.5"
thinking = true

[sampling]
temperature = 1.0
top_p = 0.95
max_tokens = 8192

[limits]
concurrency = {concurrency}
max_cost_usd = 86.0
request_timeout_s = 120
"""
_DATASET = """
[[datasets]]
name = "{name}"
source = "prompts/{source}"
prompts = {prompts}
token_budget = {budget}
"""


def run_demo(*, scale: float | None, output: Path | None, watching: Watching) -> int:
    """Run the demo in a temporary folder, or in `output`, which is kept and can be resumed.

    A demo that was left in the background keeps its folder too.
    """
    settings = watching.look.over(_screen_settings())
    check_look(settings, watching)
    if output is None:
        watching = replace(watching, again=_NOT_KEPT)
    line = tether() if watching.on_screen else UNTETHERED
    began_held = line.held
    with (
        _folder(output, keep=lambda: began_held and not line.held) as folder,
        provider() as base_url,
    ):
        path = write_demo(folder, base_url, DEFAULT_SCALE if scale is None else scale)
        sys.stderr.write(f"demo: provider {base_url}, manifest {path}\n")
        plan = make_plan(load_manifest(path), Options(base_url=base_url))
        code = perform(plan, settings, watching, line)
    if not folder.exists():
        sys.stderr.write(
            "demo: its folder is gone with it; `eaglegen-tui demo --output DIR` keeps the run in "
            "DIR/run, to report, replay, verify and export\n"
        )
    return code


def _screen_settings() -> Settings:
    """How the person likes the screen; no key and no vocabulary of theirs goes into a demo."""
    told = load_settings(Path.cwd())
    return Settings.model_construct(
        theme=told.theme,
        ascii=told.ascii,
        fps=told.fps,
        bandwidth_kb=told.bandwidth_kb,
        interval_s=told.interval_s,
    )


def write_demo(folder: Path, base_url: str, scale: float) -> Path:
    """Write the demo's prompts and manifest; returns the manifest's path."""
    datasets = write_sources(folder / "prompts", scale)
    path = folder / "manifest.toml"
    head = _MANIFEST.format(share=f"{scale:g}", base_url=base_url, concurrency=CONCURRENCY)
    path.write_text(head + "".join(_section(dataset, scale) for dataset in datasets), "utf-8")
    return path


@contextmanager
def provider(scenario: str = "demo") -> Iterator[str]:
    """A local provider for as long as the context lasts; yields its base URL.

    It watches its stdin, so that it ends with this process however that ends.
    """
    command = [sys.executable, "-m", "engine.simulator", "--port", "0", "--parent-watch"]
    process = subprocess.Popen(  # noqa: S603 - our own module in our own interpreter
        [*command, "--scenario", scenario],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # ctrl+c is the engine's to answer, by draining
    )
    try:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        line = process.stdout.readline()
        if not line:
            raise EaglegenError(f"the demo's provider did not start: {_complaint(process)}")
        yield str(json.loads(line)["base_url"])
    finally:
        process.terminate()
        process.wait()


def _complaint(process: subprocess.Popen[bytes]) -> str:
    _, err = process.communicate()
    lines = err.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit {process.returncode}"


def _section(dataset: DemoDataset, scale: float) -> str:
    return _DATASET.format(
        name=dataset.name,
        source=dataset.source.name,
        prompts=dataset.prompts,
        budget=max(10_000, round(_BUDGET_TOKENS * scale)),
    )


@contextmanager
def _folder(output: Path | None, keep: Callable[[], bool]) -> Iterator[Path]:
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        yield output
        return
    folder = Path(tempfile.mkdtemp(prefix="eaglegen-demo-"))
    try:
        yield folder
    finally:
        if not keep():
            shutil.rmtree(folder, ignore_errors=True)

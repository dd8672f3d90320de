"""The command line: options in, exit codes out. Heavy imports wait until a command needs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.errors import EaglegenError, ExitCode
from engine.format import safe_text
from tui.signals import ending_early

app = typer.Typer(
    name="eaglegen-tui",
    help="Generate EAGLE-3 training data from the target model: watched, steered, paid once.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ManifestFile = Annotated[Path, typer.Argument(help="The manifest (TOML).", show_default=False)]
Only = Annotated[list[str] | None, typer.Option(help="Only this dataset; repeatable.")]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Ceiling in flight.")]
Output = Annotated[Path | None, typer.Option(help="The run directory.")]
BaseUrl = Annotated[str | None, typer.Option(help="Another endpoint.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Pilot: the first N of each dataset.")]
AllowShort = Annotated[
    bool, typer.Option("--allow-short", help="Take sources that hold fewer rows.")
]
RunDir = Annotated[Path, typer.Argument(help="The run directory.", show_default=False)]
RunDirs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_DIR...",
        help="A run directory, several taken as one (shards), or the folder of all shards.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Theme = Annotated[str | None, typer.Option(help="Colour theme of the screen.")]
Fps = Annotated[
    float | None, typer.Option(min=0.1, max=10, help="Frames per second of the screen.")
]
Bandwidth = Annotated[
    float | None,
    typer.Option(min=0.1, metavar="KB", help="Most kilobytes per second for the screen (8)."),
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")]
Headless = Annotated[bool, typer.Option("--headless", help="No screen: lines on stderr.")]
Interval = Annotated[
    float | None, typer.Option(min=0.01, max=86_400, help="Seconds between progress lines.")
]

_FORMATS = (
    "specforge, speculators (token ids), specforge-text, torchspec, modelopt, eagle, angelslim, "
    "automodel, parquet."
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Without a command: recent runs to choose from in a terminal, the help elsewhere."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("eaglegen-tui"))
        raise typer.Exit
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        typer.echo(context.get_help())
        return
    from tui.start import start_screen

    raise typer.Exit(start_screen())


@app.command()
def demo(  # noqa: PLR0913, PLR0917 - one parameter for each option of DESIGN §5
    scale: Annotated[
        float | None, typer.Option(help="Share of the story's 37,774 prompts.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Keep the run directory here.")] = None,
    headless: Headless = False,
    json: Json = False,
    interval: Interval = None,
    theme: Theme = None,
    fps: Fps = None,
    bandwidth: Bandwidth = None,
    ascii: Ascii = False,  # noqa: A002 - the option's name
) -> None:
    """The main job on an embedded provider: six datasets, a rate-limit burst, two minutes."""
    from tui.demo.run import run_demo
    from tui.jobs import Look, Watching

    look = Look(theme, fps, bandwidth, ascii)
    watching = Watching(headless=headless, as_json=json, interval_s=interval, look=look)
    raise typer.Exit(run_demo(scale=scale, output=output, watching=watching))


@app.command()
def run(  # noqa: PLR0913, PLR0917 - one parameter for each option of DESIGN §5
    manifest: ManifestFile,
    headless: Headless = False,
    json: Json = False,
    interval: Interval = None,
    theme: Theme = None,
    fps: Fps = None,
    bandwidth: Bandwidth = None,
    ascii: Ascii = False,  # noqa: A002 - the option's name
    only: Only = None,
    concurrency: Concurrency = None,
    output: Output = None,
    base_url: BaseUrl = None,
    limit: Limit = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="I/N, I from 1 to N: this share, dealt by content, in OUTPUT/shard-I-of-N.",
            metavar="I/N",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="[ADDRESS]",
            help="Workers placed by Ray, each with a shard; no ADDRESS: a Ray of this host.",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="With --ray: how many, for good.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Failed ones too.")] = False,
    allow_short: AllowShort = False,
    max_error_rate: Annotated[
        float | None, typer.Option(min=0, max=1, help="Drain when this share of prompts failed.")
    ] = None,
    notify: Annotated[
        str | None, typer.Option(metavar="CMD", help="Run this when it is done, waits or stops.")
    ] = None,
) -> None:
    """Run a manifest, or go on with it where it ended."""
    from engine.plan import Options
    from tui.jobs import Look, Watching, parse_shard, run_manifest

    options = Options(
        only=tuple(only or ()),
        concurrency=concurrency,
        output=output,
        base_url=base_url,
        limit=limit,
        shard=parse_shard(shard),
        retry_failed=retry_failed,
        allow_short=allow_short,
        max_error_rate=max_error_rate,
    )
    look = Look(theme, fps, bandwidth, ascii)
    watching = Watching(headless, json, interval, look, notify)
    if ray is not None or workers is not None:
        from tui.fleet import run_on_ray

        code = run_on_ray(manifest, options, watching, address=ray, workers=workers)
        raise typer.Exit(code)
    raise typer.Exit(run_manifest(manifest, options, watching))


@app.command()
def check(  # noqa: PLR0913, PLR0917 - one parameter for each option of DESIGN §5
    manifest: ManifestFile,
    offline: Annotated[bool, typer.Option("--offline", help="Send nothing at all.")] = False,
    json: Json = False,
    show: Annotated[
        int, typer.Option(min=0, metavar="N", help="Print N prompts of each dataset as served.")
    ] = 0,
    only: Only = None,
    base_url: BaseUrl = None,
    limit: Limit = None,
    concurrency: Concurrency = None,
    output: Output = None,
    allow_short: AllowShort = False,
) -> None:
    """Everything that can be known before spending: prompts, hosts, key, credits, price."""
    from engine.plan import Options
    from tui.check import run_check

    options = Options(
        only=tuple(only or ()),
        concurrency=concurrency,
        output=output,
        base_url=base_url,
        limit=limit,
        allow_short=allow_short,
    )
    raise typer.Exit(run_check(manifest, options, offline=offline, as_json=json, show=show))


@app.command()
def status(run_dir: RunDirs, json: Json = False) -> None:
    """The state of a live or ended run, with the age of its heartbeat."""
    from tui.status import show_statuses

    raise typer.Exit(show_statuses(run_dir, as_json=json))


@app.command()
def attach(
    run_dir: RunDirs,
    read_only: Annotated[bool, typer.Option("--read-only", help="Look, send nothing.")] = False,
    theme: Theme = None,
    fps: Fps = None,
    bandwidth: Bandwidth = None,
    ascii: Ascii = False,  # noqa: A002 - the option's name
) -> None:
    """The full screen on a run that another process does."""
    from tui.control import attach_all as follow
    from tui.jobs import Look

    look = Look(theme, fps, bandwidth, ascii)
    raise typer.Exit(follow(run_dir, read_only=read_only, look=look))


@app.command()
def replay(
    run_dir: RunDir,
    speed: Annotated[
        float, typer.Option(min=0.1, max=36_000, help="Recorded seconds per second.")
    ] = 10.0,
    theme: Theme = None,
    fps: Fps = None,
    bandwidth: Bandwidth = None,
    ascii: Ascii = False,  # noqa: A002 - the option's name
) -> None:
    """An ended run again, or a live one's past, on the same screen: space, + -, arrows."""
    from tui.jobs import Look
    from tui.replay import replay as play

    raise typer.Exit(play(run_dir, speed=speed, look=Look(theme, fps, bandwidth, ascii)))


@app.command()
def report(
    run_dir: RunDir,
    out: Annotated[
        Path | None, typer.Option("--out", help="The HTML file (RUN_DIR/report.html).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite any file.")] = False,
) -> None:
    """One self-contained HTML page about a run, live or ended, to attach to a ticket."""
    from tui.report.command import report as write

    raise typer.Exit(write(run_dir, out, force=force))


@app.command()
def control(
    run_dir: RunDir,
    action: Annotated[str, typer.Argument(help="pause, resume, throttle, skip, drain, stop ...")],
    value: Annotated[str | None, typer.Argument(help="A dataset's name, or a number.")] = None,
) -> None:
    """Steer a live run from a script: pause, resume, throttle N, skip NAME, drain, stop."""
    from tui.control import control as steer

    raise typer.Exit(steer(run_dir, action, value))


@app.command()
def verify(run_dir: RunDirs, json: Json = False) -> None:
    """Audit the rows on disk: ids, counts, doubles, torn lines, totals."""
    from tui.verify import verify as audit

    raise typer.Exit(audit(run_dir, as_json=json))


@app.command()
def export(  # noqa: PLR0913, PLR0917 - one parameter for each option of DESIGN §5
    run_dir: RunDirs,
    to: Annotated[str, typer.Option("--to", help=_FORMATS, show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The file to write.", show_default=False)],
    only: Only = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A grade, a flag, or length; repeatable.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of a row, by the trainer's own policy.")
    ] = None,
    shard_rows: Annotated[int | None, typer.Option(min=1, help="Rows in each file.")] = None,
    shard_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in each file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    json: Json = False,
) -> None:
    """Training files, read back after writing: specforge, speculators, torchspec and others."""
    from tui.export import Wanted
    from tui.export import export as write

    wanted = Wanted(
        to=to,
        out=out,
        only=tuple(only or ()),
        include=tuple(word for part in include or () for word in part.split(",")),
        max_length=max_length,
        shard_rows=shard_rows,
        shard_tokens=shard_tokens,
        force=force,
    )
    raise typer.Exit(write(run_dir, wanted, as_json=json))


@app.command()
def keys() -> None:
    """The screen's keys as they are, as TOML: what a keys.toml of your own starts from."""
    from tui import keymap

    typer.echo(f"# {keymap.path()}: name what you want to change; the rest stays as it is.")
    typer.echo(keymap.as_toml(keymap.load()), nl=False)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.", metavar="DIR")] = Path(),
) -> None:
    """A commented manifest, sample prompts and .env to start from."""
    from tui.starter import write_starter

    for path in write_starter(folder):
        typer.echo(str(path))
    typer.echo(f"Next: put your key into {folder / '.env'}, then", err=True)
    typer.echo(f"  eaglegen-tui check {folder / 'manifest.toml'}", err=True)
    typer.echo(f"  eaglegen-tui run {folder / 'manifest.toml'} --limit 20", err=True)


@app.command()
def simulate(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8787,
    scenario: Annotated[str | None, typer.Option(help="A TOML file or a built-in name.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Append each charge here.")] = None,
    seed: Annotated[int | None, typer.Option(help="Overrides the scenario's seed.")] = None,
) -> None:
    """The local OpenRouter-like provider by itself, on 127.0.0.1."""
    from engine.simulator.process import main as serve

    where = None if ledger is None else str(ledger)
    raise typer.Exit(serve(port, scenario, where, seed, False))


def _with_address(arguments: list[str]) -> list[str]:
    """`--ray` by itself means a Ray of this host; Typer has no option with an optional value."""
    given = list(arguments)
    for place, word in enumerate(arguments):
        after = arguments[place + 1 : place + 2]
        if word == "--ray" and (
            not after or after[0].startswith("-") or after[0].endswith(".toml")
        ):
            given[place] = "--ray=local"
    return given


def main() -> None:
    """The console script: errors as one readable sentence, never a traceback with locals."""
    for bars in ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(bars, "1")  # they would be drawn over the screen
    try:
        with ending_early():
            app(_with_address(sys.argv[1:]))
    except EaglegenError as error:
        # an error may quote a server or a file
        lines = (safe_text(line) for line in str(error).split("\n"))
        sys.stderr.write("eaglegen-tui: " + "\n".join(lines) + "\n")
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        sys.exit(int(ExitCode.INTERNAL))

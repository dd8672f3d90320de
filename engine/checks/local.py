"""What this machine says: the run directory, open files, disk, and the vocabulary."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from engine.checks.findings import SENTENCE, Finding, fail, ok, warn
from engine.checks.money import Estimate
from engine.disk.outfolder import HINT, check_parts, obstacle
from engine.disk.rundir import RUN, differs, is_held, read_json
from engine.disk.runrecord import run_problem
from engine.errors import UsageError, VocabularyError
from engine.format import safe_text
from engine.manifest import Manifest
from engine.settings import Settings
from engine.tokens.pieces import Encoder
from engine.wire.client import ensure_descriptors

_BYTES_PER_TOKEN = 13
"""Of rows.jsonl: about 4.5 of text and 7.5 of an id in decimal, and the line's other fields."""
_GIGABYTE = 1e9


def find_vocabulary(manifest: Manifest, settings: Settings) -> tuple[Encoder | None, list[Finding]]:
    """The manifest's vocabulary, or None with what it lacks."""
    endpoint = manifest.endpoint
    if endpoint.tokenizer == "none":
        text = 'tokenizer = "none": rows carry no token ids, and prompt tokens are estimated'
        return None, [warn("manifest", "tokenizer", text, "Name the model's vocabulary.")]
    from engine.tokens.vocabulary import load_vocabulary

    path = manifest.tokenizer_file or settings.tokenizer_path
    try:
        vocabulary = load_vocabulary(endpoint.tokenizer, path=path, cache_dir=settings.cache_dir)
    except VocabularyError as error:
        return None, [fail("manifest", "tokenizer", error.message, error.hint)]
    found = [warn("manifest", "tokenizer", note) for note in vocabulary.notes]
    text = f"the vocabulary {vocabulary.name} is there, sha256 as pinned ({vocabulary.source})"
    return vocabulary, [*found, ok("manifest", "tokenizer", text)]


def folder_findings(manifest: Manifest, folder: Path) -> Iterator[Finding]:
    """Whether this manifest may write to its run directory."""
    if words := obstacle(folder):
        yield fail("manifest", "output", words, HINT)
        return
    try:
        check_parts(folder, (dataset.name for dataset in manifest.datasets))
    except UsageError as error:
        yield fail("manifest", "output", error.message, error.hint)
    record = read_json(folder / RUN)
    if record is not None and not run_problem(record):
        differences = "; ".join(differs(record["identity"], manifest.identity()))
        if differences:
            text = f"{folder} holds a run with another identity: {safe_text(differences, SENTENCE)}"
            fix = "Restore these values, or choose another output folder (--output DIR)."
            yield fail("manifest", "identity", text, fix)
        else:
            yield ok("manifest", "identity", f"{folder} holds this run: it would go on")
    elif (folder / RUN).exists():
        text = f"{folder / RUN} is not readable, so the run's identity is unknown"
        yield fail("manifest", "identity", text, "Restore it, or choose another output folder.")
    if is_held(folder):
        text = f"another process is doing the run in {folder}"
        yield warn("manifest", "held", text, "`eaglegen-tui attach` shows it.")


def machine_findings(concurrency: int, folder: Path, reckoned: Estimate) -> Iterator[Finding]:
    """Open files for the requests in flight, and disk for the rows."""
    try:
        ensure_descriptors(concurrency)
    except UsageError as error:
        yield fail("manifest", "open_files", error.message, error.hint)
    tokens = sum(part.completion_tokens + part.prompt_tokens for part in reckoned.high)
    needed = tokens * _BYTES_PER_TOKEN
    free = _free(folder)
    if free is not None and needed > free:
        text = (
            f"the rows may need {needed / _GIGABYTE:,.1f} GB in the high case, the disk has "
            f"{free / _GIGABYTE:,.1f} GB free"
        )
        yield warn("estimate", "disk", text, "Free some, or choose another output folder.")


def _free(folder: Path) -> int | None:
    """Bytes free where the folder is or would be; None where there is no such place."""
    for path in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(path).free
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            return None
    return None

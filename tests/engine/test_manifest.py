"""The manifest: what it accepts, what it means, and how it says what is wrong and where."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from engine_parts import DATASET, HEAD, dataset_text, manifest_of

from engine.errors import ExitCode, ManifestError
from engine.manifest import Manifest, load_manifest
from engine.tomlplace import line_of

SHARED = Path(__file__).parents[2].parent / "shared"

WHOLE = """\
[run]
name = "kimi-k25-eagle3"
output = "runs/kimi-k25-eagle3"      # relative to the manifest's folder
[endpoint]
base_url = "https://openrouter.ai/api/v1"
model = "moonshotai/kimi-k2.5"
tokenizer = "kimi-k2.5"
thinking = true
api = "auto"
tools_mode = "raw"
token_ids = "auto"
stream = false
response_cache = true
headers = {}
extra_body = {}
[endpoint.provider]
order = ["siliconflow/int4"]
allow_fallbacks = false
[sampling]
temperature = 1.0
top_p = 0.95
max_tokens = 8192
[limits]
concurrency = 2000
max_cost_usd = 86.0
request_timeout_s = 1800
max_attempts = 8
on_length = "keep"
[[datasets]]
name = "B6_ultrachat"
source = "prompts/b6.jsonl"
prompts = 15000
token_budget = 10_000_000
turns = "all"
sampling = { max_tokens = 4096 }
[[datasets]]
name = "B7"
source = "/absolute/b7.csv.gz"
prompts = 1
"""


def refused(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        manifest_of(text)
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value.message


def test_the_contracts_manifest_is_accepted_as_it_stands() -> None:
    manifest = manifest_of(WHOLE, Path("/data"))
    first, second = manifest.datasets
    assert manifest.output_path == Path("/data/runs/kimi-k25-eagle3")
    assert manifest.source_path(first) == Path("/data/prompts/b6.jsonl")
    assert manifest.source_path(second) == Path("/absolute/b7.csv.gz")
    assert manifest.endpoint.provider == {"order": ["siliconflow/int4"], "allow_fallbacks": False}
    assert manifest.limits.request_timeout_s == 1800.0
    assert (first.prompts, first.token_budget, second.token_budget) == (15000, 10_000_000, None)


def test_a_datasets_sampling_overrides_the_runs() -> None:
    manifest = manifest_of(WHOLE)
    first, second = manifest.datasets
    assert manifest.sampling_of(first) == {"temperature": 1.0, "top_p": 0.95, "max_tokens": 4096}
    assert manifest.sampling_of(second)["max_tokens"] == 8192


def test_the_smallest_manifest_has_the_contracts_defaults() -> None:
    manifest = manifest_of()
    limits, endpoint, dataset = manifest.limits, manifest.endpoint, manifest.datasets[0]
    assert (limits.concurrency, limits.max_cost_usd, limits.max_attempts) == (2000, None, 8)
    assert (limits.request_timeout_s, limits.on_length) == (1800, "keep")
    assert (endpoint.api, endpoint.tools_mode, endpoint.token_ids) == ("auto", "raw", "auto")
    assert (endpoint.thinking, endpoint.stream, endpoint.response_cache) == (True, False, True)
    assert (dataset.turns, dataset.token_budget, dataset.max_cost_usd) == ("all", None, None)


def test_the_real_manifest_of_six_public_sets_is_accepted() -> None:
    path = SHARED / "prompts" / "manifest.toml"
    if not path.is_file():
        pytest.skip("the shared prompt sets are not beside this checkout")
    manifest = load_manifest(path)
    assert sum(dataset.prompts for dataset in manifest.datasets) == 9714


def test_identity_is_what_decides_the_text_and_nothing_else() -> None:
    manifest = manifest_of(WHOLE)
    other = manifest_of(
        WHOLE.replace("https://openrouter.ai/api/v1", "http://127.0.0.1:1/v1")
        .replace("concurrency = 2000", "concurrency = 5")
        .replace("token_budget = 10_000_000", "token_budget = 5")
        .replace("siliconflow/int4", "novita")
        .replace('output = "runs/kimi-k25-eagle3"', 'output = "elsewhere"')
        .replace("prompts = 15000", "prompts = 3")
    )
    assert manifest.identity() == other.identity()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('model = "moonshotai/kimi-k2.5"', 'model = "moonshotai/kimi-k2.6"'),
        ('tokenizer = "kimi-k2.5"', 'tokenizer = "none"'),
        ("thinking = true", "thinking = false"),
        ('tools_mode = "raw"', 'tools_mode = "api"'),
        ("extra_body = {}", "extra_body = { top_k = 4 }"),
        ("temperature = 1.0", "temperature = 0.9"),
        ("max_tokens = 4096", "max_tokens = 4097"),
        ('turns = "all"', 'turns = "first"'),
    ],
)
def test_whatever_changes_the_answers_changes_the_identity(old: str, new: str) -> None:
    assert manifest_of(WHOLE.replace(old, new)).identity() != manifest_of(WHOLE).identity()


@pytest.mark.parametrize(
    ("text", "line", "unknown", "near"),
    [
        (HEAD + "thinkin = true\n" + DATASET, 8, "endpoint.thinkin", "thinking"),
        (HEAD + "[limit]\nconcurrency = 5\n" + DATASET, 8, "limit", "limits"),
        (
            HEAD + "[limits]\n# why\nconcurency = 5\n" + DATASET,
            10,
            "limits.concurency",
            "concurrency",
        ),
        (
            HEAD + DATASET + "token_buget = 5\n",
            13,
            "dataset 1 ('B6_ultrachat'): token_buget",
            "token_budget",
        ),
        (
            HEAD + DATASET + DATASET.replace("B6", "B7") + "turn = 'all'\n",
            18,
            "dataset 2 ('B7_ultrachat'): turn",
            "turns",
        ),
        (HEAD.replace("output", "ouput") + DATASET, 3, "run.ouput", "output"),
        ("folder = 'x'\n" + HEAD + DATASET, 1, "folder", ""),
        (HEAD + "qqqqqq = 1\n" + DATASET, 8, "endpoint.qqqqqq", ""),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_one(
    text: str, line: int, unknown: str, near: str
) -> None:
    message = refused(text)
    table, _, key = unknown.rpartition(": ")
    wanted = f"manifest.toml:{line}: {table + ': ' if table else ''}unknown key {key}"
    assert wanted + (f"; did you mean {near}?" if near else "") in message.splitlines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD.replace('name = "story"\n', "") + DATASET, "manifest.toml:1: run.name is missing"),
        (HEAD, "manifest.toml: datasets: there is no dataset; add a [[datasets]] table"),
        (HEAD + "[datasets]\nname = 'a'\n", "manifest.toml:8: datasets: write [[datasets]]"),
        (
            HEAD + DATASET.replace("prompts = 3\n", ""),
            "manifest.toml:9: dataset 1 ('B6_ultrachat'): prompts is missing",
        ),
        (
            HEAD + DATASET.replace("= 3", "= 0"),
            "manifest.toml:12: dataset 1 ('B6_ultrachat'): prompts: ",
        ),
        (
            HEAD + DATASET.replace("= 3", '= "3"'),
            "manifest.toml:12: dataset 1 ('B6_ultrachat'): prompts: ",
        ),
        (
            HEAD + DATASET.replace("= 3", "= true"),
            "manifest.toml:12: dataset 1 ('B6_ultrachat'): prompts: ",
        ),
        (
            HEAD + DATASET.replace("= 3", "= 3.0"),
            "manifest.toml:12: dataset 1 ('B6_ultrachat'): prompts: ",
        ),
        (
            HEAD + DATASET + "turns = 'both'\n",
            "manifest.toml:13: dataset 1 ('B6_ultrachat'): turns: ",
        ),
        (
            HEAD + DATASET + "max_cost_usd = nan\n",
            "manifest.toml:13: dataset 1 ('B6_ultrachat'): max_cost_usd: ",
        ),
        (HEAD + "[limits]\nconcurrency = 0\n" + DATASET, "manifest.toml:9: limits.concurrency: "),
        (
            HEAD + "[limits]\nmax_cost_usd = -1\n" + DATASET,
            "manifest.toml:9: limits.max_cost_usd: ",
        ),
        (HEAD + "stream = true\n" + DATASET, "manifest.toml:8: endpoint.stream: streaming"),
        (HEAD + 'tokenizer = "llama"\n' + DATASET, "manifest.toml:8: endpoint.tokenizer: "),
        (
            HEAD + DATASET + DATASET,
            "manifest.toml:15: dataset 2 ('B6_ultrachat'): name: two datasets are named",
        ),
        (
            HEAD + DATASET.replace("B6_ultrachat", "../b6"),
            "manifest.toml:10: dataset 1 ('../b6'): name: ",
        ),
        (
            HEAD + DATASET.replace("B6_ultrachat", ".."),
            "manifest.toml:10: dataset 1 ('..'): name: ",
        ),
        (HEAD + DATASET.replace("B6_ultrachat", "status.json"), "is a file of the run directory"),
    ],
)
def test_a_wrong_value_is_named_with_file_key_and_line(text: str, words: str) -> None:
    assert words in refused(text)


def test_all_faults_are_told_at_once() -> None:
    message = refused(HEAD.replace("output", "ouput") + "[limits]\nconcurrency = 0\n" + DATASET)
    assert len(message.splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEAD + "thinking = \n" + DATASET, 8),
        (HEAD + DATASET + "name = 'again'\n", 13),
        (HEAD + DATASET + 'x = "open\n', 13),
    ],
)
def test_a_toml_error_names_its_line(text: str, line: int) -> None:
    message = refused(text)
    assert "manifest.toml: not valid TOML" in message
    assert f"at line {line}," in message


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + DATASET).replace("\n", "\r\n").encode())
    assert load_manifest(path).run.name == "story"


def test_a_missing_or_unreadable_manifest_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no such manifest"):
        load_manifest(tmp_path / "none.toml")
    with pytest.raises(ManifestError, match="is a folder"):
        load_manifest(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"\n')
    with pytest.raises(ManifestError, match="UTF-8"):
        load_manifest(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    "header",
    [
        'Authorization = "Bearer abc"',
        'authorization = "abc"',
        '"X-API-Key" = "abc"',
        '"Ocp-Apim-Subscription-Key" = "abc"',
        '"X-Auth-Token" = "abc"',
        'Cookie = "session=1"',
        'Custom = "Bearer abc"',
        'Custom = "sk-or-v1-abcdef"',
    ],
)
def test_a_key_in_the_headers_is_refused_without_repeating_it(header: str) -> None:
    message = refused(HEAD + f"headers = {{ {header} }}\n" + DATASET)
    assert "manifest.toml:8: endpoint.headers." in message
    assert "EAGLEGEN_API_KEY" in message
    assert "abc" not in message
    assert "session" not in message


@pytest.mark.parametrize(
    "header",
    ['"X-Title" = "task-force sk 1"', '"X-Team" = "risk-free"', '"HTTP-Referer" = "https://a.b"'],
)
def test_headers_that_hold_no_key_pass(header: str) -> None:
    assert manifest_of(HEAD + f"headers = {{ {header} }}\n" + DATASET).endpoint.headers


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://user:hunter2@host/v1", "written to run.json"),
        ("https://hunter2@host/v1", "written to run.json"),
        ("https://host/v1?api_key=hunter2", "without ? or #"),
        ("http://[::1/v1", "IPv6"),
        ("http://host:http/v1", "port"),
        ("http://host:0/v1", "port"),
        ("ftp://host/v1", "must begin with http"),
        ("host/v1", "must begin with http"),
        ("https://", "must begin with http"),
    ],
)
def test_an_address_that_cannot_work_or_holds_a_key_is_refused(url: str, words: str) -> None:
    message = refused(HEAD.replace("http://127.0.0.1:8787/api/v1", url) + DATASET)
    assert message.startswith("manifest.toml:6: endpoint.base_url: ")
    assert words in message
    assert "hunter2" not in message


@pytest.mark.parametrize("place", ["[sampling]\n{}\n", "extra_body = {{ {} }}\n"])
@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("messages = []", "is set by eaglegen-tui itself"),
        ('model = "x"', "is set by eaglegen-tui itself"),
        ("stream = true", "is set by eaglegen-tui itself"),
        ('models = ["x"]', "several teachers"),
        ("n = 4", ".n: must be 1"),
    ],
)
def test_what_would_break_a_request_or_pay_for_unkept_answers_is_refused(
    place: str, key: str, words: str
) -> None:
    assert words in refused(HEAD + place.format(key) + DATASET)
    if place.startswith("["):
        assert words in refused(HEAD + DATASET + f"sampling = {{ {key} }}\n")


def test_every_section_is_frozen() -> None:
    manifest = manifest_of()
    for section in (manifest, manifest.endpoint, manifest.limits, manifest.datasets[0]):
        with pytest.raises(ValueError, match="frozen"):
            setattr(section, next(iter(type(section).model_fields)), None)


def test_a_changed_endpoint_keeps_the_folder() -> None:
    manifest = manifest_of(folder=Path("/data"))
    copy = manifest.model_copy(update={"endpoint": manifest.endpoint})
    assert copy.output_path == Path("/data/out")


@pytest.mark.parametrize(
    ("loc", "line"),
    [
        (("run", "name"), 2),
        (("endpoint", "provider", "order"), 17),
        (("sampling", "top_p"), 21),
        (("datasets", 0), 29),
        (("datasets", 0, "sampling", "max_tokens"), 35),
        (("datasets", 1, "prompts"), 39),
        (("datasets", 1, "turns"), 36),
        (("nowhere", "x"), None),
    ],
)
def test_a_keys_line_is_found_or_that_of_its_table(
    loc: tuple[str | int, ...], line: int | None
) -> None:
    assert line_of(WHOLE, loc) == line


def test_lines_are_found_in_subtables_and_past_nested_arrays() -> None:
    text = (
        HEAD
        + "extra_body = { x = [\n  ['a'],\n] }\nthinking = 1\n"
        + DATASET
        + "[datasets.sampling]\ntop_p = 1\n"
        + dataset_text("B7", 5)
        + "  [datasets.sampling]  # its own\n  top_p = 2\n"
    )
    lines = text.splitlines()
    assert lines[(line_of(text, ("endpoint", "thinking")) or 0) - 1] == "thinking = 1"
    assert lines[(line_of(text, ("datasets", 0, "sampling", "top_p")) or 0) - 1] == "top_p = 1"
    assert lines[(line_of(text, ("datasets", 1, "sampling", "top_p")) or 0) - 1] == "  top_p = 2"


def test_every_key_of_a_dataset_is_its_own_nearest_key() -> None:
    keys = list(type(manifest_of().datasets[0]).model_fields)
    assert all(difflib.get_close_matches(key, keys, n=1) == [key] for key in keys)
    assert "_folder" not in Manifest.model_fields


@pytest.mark.parametrize("value", ["0", "-1", '"many"', "true", "1.5"])
def test_a_max_tokens_that_can_write_nothing_is_refused(value: str) -> None:
    with pytest.raises(
        ManifestError, match=r"sampling\.max_tokens: must be a whole number of at least 1"
    ):
        manifest_of(f"{HEAD}\n[sampling]\nmax_tokens = {value}\n{DATASET}")

"""A manifest's values: only what JSON, HTTP and a file system can hold gets in."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from engine_parts import DATASET, HEAD, dataset_text, manifest_of

from engine.errors import ExitCode, ManifestError, UsageError
from engine.tomlplace import line_of

KEY = "hunter2"


def refused(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        manifest_of(text)
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value.message


# --- values that JSON cannot say --------------------------------------------------------------

PLACES = {
    "sampling": (HEAD + "[sampling]\nx = {}\n" + DATASET, "manifest.toml:9: sampling.x"),
    "extra_body": (
        HEAD + "[endpoint.extra_body]\nx = {}\n" + DATASET,
        "manifest.toml:9: endpoint.extra_body.x",
    ),
    "provider": (
        HEAD + "[endpoint.provider]\nx = {}\n" + DATASET,
        "manifest.toml:9: endpoint.provider.x",
    ),
    "inline": (
        HEAD + DATASET + "sampling = {{ x = {} }}\n",
        "manifest.toml:13: dataset 1 ('B6_ultrachat'): sampling.x",
    ),
    "nested": (
        HEAD + "[sampling]\nx = {{ y = [1, {}] }}\n" + DATASET,
        "manifest.toml:9: sampling.x.y.1",
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nan", "nan is no JSON number; write a finite one, or leave the key out"),
        ("-inf", "-inf is no JSON number; write a finite one, or leave the key out"),
        ("18446744073709551616", "the number has more than 64 bits; write a smaller one"),
        ("-9223372036854775809", "the number has more than 64 bits; write a smaller one"),
        ("2026-11-30", 'a date or time is no JSON value; write it in quotes: "2026-11-30"'),
        ("07:32:00", 'a date or time is no JSON value; write it in quotes: "07:32:00"'),
        (
            "1979-05-27T07:32:00Z",
            'a date or time is no JSON value; write it in quotes: "1979-05-27T07:32:00+00:00"',
        ),
    ],
)
def test_what_json_cannot_say_is_named_with_file_line_and_key(
    place: str, value: str, words: str
) -> None:
    text, where = PLACES[place]
    assert refused(text.format(value)) == f"{where}: {words}"


@pytest.mark.parametrize("value", ["18446744073709551615", "-9223372036854775808", "1e308"])
def test_the_largest_numbers_of_64_bits_pass(value: str) -> None:
    manifest = manifest_of(HEAD + f"[sampling]\nseed = {value}\n" + DATASET)
    assert orjson.loads(orjson.dumps(manifest.model_dump(mode="json")))["sampling"] == {
        "seed": float(value) if "e" in value else int(value)
    }


def test_tables_too_deep_for_json_are_refused() -> None:
    deep = "[" * 40 + "]" * 40
    words = "manifest.toml:9: sampling.x: nested more than 32 levels deep"
    assert refused(HEAD + f"[sampling]\nx = {deep}\n" + DATASET) == words
    bottomless = "[" * 20_000 + "]" * 20_000
    assert "nested too deeply" in refused(HEAD + f"[sampling]\nx = {bottomless}\n" + DATASET)


def test_a_number_of_thousands_of_digits_is_no_traceback() -> None:
    assert "manifest.toml: not valid TOML" in refused(
        HEAD + "[sampling]\nseed = " + "9" * 5000 + "\n" + DATASET
    )


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("prompts = 99999999999999999999", "dataset 1 ('B6_ultrachat'): prompts"),
        ("prompts = 3\ntoken_budget = 99999999999999999999", "token_budget"),
        ("prompts = 3\nmax_cost_usd = inf", "max_cost_usd"),
    ],
)
def test_numbers_that_no_run_has_are_refused(line: str, place: str) -> None:
    assert f"{place}: " in refused(HEAD + DATASET.replace("prompts = 3", line))


def test_a_timeout_beyond_a_month_is_refused() -> None:
    text = HEAD + "[limits]\nrequest_timeout_s = 1e300\n" + DATASET
    assert refused(text).startswith("manifest.toml:9: limits.request_timeout_s: ")


# --- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ('"X-Title" = "Zürich"', "the value holds characters outside ASCII"),
        ('"X-Title" = "東京"', "the value holds characters outside ASCII"),
        ('"X-Title" = "a\\r\\nX-Evil: 1"', "the value holds a line break"),
        ('"X-Title" = "a\\nb"', "the value holds a line break"),
        ('"X-Title" = "a\\u0000b"', "the value holds a control character"),
        ('"X-Title" = " a"', "begins or ends with a blank"),
        ('"" = "a"', "a header needs a name"),
        ('"X Title" = "a"', "is no header name"),
        ('"X-Title:" = "a"', "is no header name"),
        ('"X\\nTitle" = "a"', "is no header name"),
        ('"Überschrift" = "a"', "is no header name"),
        ('"Content-Length" = "5"', "is set by eaglegen-tui itself"),
        ('"content-type" = "text/plain"', "is set by eaglegen-tui itself"),
        ('"Transfer-Encoding" = "chunked"', "is set by eaglegen-tui itself"),
        ('"Host" = "elsewhere"', "is set by eaglegen-tui itself"),
        ('"Connection" = "close"', "is set by eaglegen-tui itself"),
        ('"Accept-Encoding" = "br"', "is set by eaglegen-tui itself"),
        ('"X-OpenRouter-Cache" = "false"', "is set by eaglegen-tui itself"),
        ('"X-A" = "1", "x-a" = "2"', "X-A and x-a are one header"),
        ('"X-Title" = 5', "must be text in quotes"),
        ('"X-Title" = 2026-01-01', "must be text in quotes"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(
    header: str, words: str
) -> None:
    message = refused(HEAD + f"headers = {{ {header} }}\n" + DATASET)
    assert message.startswith("manifest.toml:8: endpoint.headers")
    assert words in message
    assert "\n" not in message


def test_no_header_message_repeats_a_value() -> None:
    for header in (f'"X-A" = "{KEY}ü"', f'"X-A" = "{KEY}\\n"', f'"Authorization" = "{KEY}"'):
        assert KEY not in refused(HEAD + f"headers = {{ {header} }}\n" + DATASET)


def test_ordinary_headers_pass() -> None:
    header = '"X-Title" = "a b; c=\\"d\\"", "HTTP-Referer" = "https://a.b/%C3%A9", Empty = ""'
    assert len(manifest_of(HEAD + f"headers = {{ {header} }}\n" + DATASET).endpoint.headers) == 3


# --- the address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"https://user:{KEY}@host/v1", "user name or key"),
        (f"https://{KEY}@host:x/v1", "user name or key"),
        (f"https://us\\u2100er:{KEY}@host/v1", "user name or key"),
        (f"https://host:{KEY}/v1", "the port is no number"),
        (f"{KEY}://host/v1", "must begin with http"),
        (f"user:{KEY}@host/v1", "must begin with http"),
        (f"https://host/v1?key={KEY}", "without ? or #"),
        (f"https://host/sk-{KEY}/v1", "user name or key"),
        ("localhost:8000/v1", "must begin with http"),
        ("HTTP://host/v1", "must begin with http"),
        ("http:///v1", "must begin with http"),
        ("http://ho st/v1", "holds a blank"),
        ("http://host/v1 ", "holds a blank"),
        ("http://host/a b", "holds a blank"),
        ("http://host/v1\\n", "holds a blank"),
        ("http://hôst/v1", "holds a blank or a character"),
        ("http://host:65536/v1", "the port is no number from 1 to 65535"),
        ("http://host:-1/v1", "the port is no number from 1 to 65535"),
        ("http://host:0/v1", "the port is no number from 1 to 65535"),
        ("http://host:1:2/v1", "the port is no number from 1 to 65535"),
        ("http://a..b/v1", "names no host"),
        ("http://-a/v1", "names no host"),
        ("http://[::g]/v1", "no IPv6"),
        ("http://[::1/v1", "no IPv6"),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_without_repeating_it(
    url: str, words: str
) -> None:
    message = refused(HEAD.replace("http://127.0.0.1:8787/api/v1", url) + DATASET)
    assert message.startswith("manifest.toml:6: endpoint.base_url: ")
    assert words in message
    assert KEY not in message
    endpoint = manifest_of().endpoint
    with pytest.raises(UsageError) as caught:
        endpoint.at(url.encode().decode("unicode_escape") if "\\" in url else url)
    assert caught.value.message.startswith("--base-url: ")
    assert KEY not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "https://openrouter.ai/api/v1",
        "http://127.0.0.1:8787",
        "http://[::1]:8000/v1",
        "http://gpu_node-3.cluster.local:30000/v1/",
        "https://host.:443/a%20b/v1",
        "http://h:/v1",
    ],
)
def test_an_address_that_can_be_asked_passes(url: str) -> None:
    text = HEAD.replace("http://127.0.0.1:8787/api/v1", url) + DATASET
    assert manifest_of(text).endpoint.base_url == url
    assert manifest_of().endpoint.at(url).base_url == url


# --- routing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('order = "siliconflow"', "order: must be a list of names"),
        ("order = [1]", "order: must be a list of names"),
        ('only = [""]', "only: must be a list of names"),
        ("ignore = {}", "ignore: must be a list of names"),
        ('quantizations = "int4"', "quantizations: must be a list of names"),
        ('allow_fallbacks = "no"', "allow_fallbacks: must be true or false"),
        ("require_parameters = 1", "require_parameters: must be true or false"),
        ('data_collection = "maybe"', 'data_collection: must be "allow" or "deny"'),
        ("data_collection = {}", 'data_collection: must be "allow" or "deny"'),
        ("sort = 1", "sort: must be a name"),
        ("max_price = 5", "max_price: must be a table of USD per million"),
        ('max_price = { prompt = "cheap" }', "max_price: must be a table of USD per million"),
    ],
)
def test_a_routing_key_of_a_wrong_type_is_refused_at_load(line: str, words: str) -> None:
    message = refused(HEAD + f"[endpoint.provider]\n{line}\n" + DATASET)
    assert message.startswith(f"manifest.toml:9: endpoint.provider.{words}")


def test_routing_as_documented_passes() -> None:
    lines = 'order = ["a"]\nsort = "price"\nmax_price = { prompt = "1", completion = 2.5 }\nnew = 1'
    assert manifest_of(HEAD + f"[endpoint.provider]\n{lines}\n" + DATASET).endpoint.provider["new"]


# --- datasets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "datasets = []\n"])
def test_without_a_dataset_the_message_says_what_to_add(text: str) -> None:
    message = refused(text + HEAD)
    assert "datasets: there is no dataset; add a [[datasets]] table with name, source" in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "letters, digits"),
        (".", "begins with a letter or digit"),
        (".hidden", "begins with a letter or digit"),
        ("-rf", "begins with a letter or digit"),
        ("a/b", "letters, digits"),
        ("a\\\\b", "letters, digits"),
        ("B6.", "does not end with a dot"),
        ("B6 ", "letters, digits"),
        ("B6\\u0000", "letters, digits"),
        ("Ü", "letters, digits"),
        ("a" * 101, "has 101 characters; at most 100"),
        ("Status.JSON", "is a file of the run directory"),
        ("run.lock", "is a file of the run directory"),
    ],
)
def test_a_name_that_can_be_no_folder_is_refused_with_words(name: str, words: str) -> None:
    message = refused(HEAD + DATASET.replace("B6_ultrachat", name))
    assert message.startswith("manifest.toml:10: dataset 1")
    assert words in message


def test_names_that_differ_in_case_alone_are_refused() -> None:
    message = refused(HEAD + dataset_text("D0", 1) + dataset_text("b", 1) + dataset_text("d0", 1))
    assert message == (
        "manifest.toml:20: dataset 3 ('d0'): name: D0 and d0 differ only in case, and are one "
        "folder on some systems; choose another name"
    )


def test_a_dataset_is_named_by_its_number_and_its_name() -> None:
    text = HEAD + dataset_text("B3", 1) + dataset_text("B4", 0) + dataset_text("B5", 1, turns=1)
    assert [line.partition(": ")[2].partition(": ")[0] for line in refused(text).splitlines()] == [
        "dataset 2 ('B4')",
        "dataset 3 ('B5')",
    ]


# --- paths ------------------------------------------------------------------------------------


def test_a_tilde_is_somebodys_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    text = HEAD.replace('"out"', '"~/runs/a"') + 'tokenizer_path = "~/v.model"\n' + DATASET
    manifest = manifest_of(text.replace('"b6.jsonl"', '"~/b6.jsonl"'), Path("/data"))
    assert manifest.output_path == Path("/home/me/runs/a")
    assert manifest.tokenizer_file == Path("/home/me/v.model")
    assert manifest.source_path(manifest.datasets[0]) == Path("/home/me/b6.jsonl")
    assert manifest_of(HEAD.replace('"out"', '"a~b"') + DATASET).output_path == Path("a~b")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("~nobody-has-this-name/x", "~nobody-has-this-name is nobody's home folder"),
        ("a\\u0000b", "holds a control character"),
        ("a\\nb", "holds a control character"),
        ("a/" + "b" * 256, "is too long for a file system (255 bytes for a name, 4000 in all)"),
        ("é" * 128, "is too long for a file system"),
        ("a/" * 2001, "is too long for a file system"),
        ("", "must not be empty"),
    ],
)
@pytest.mark.parametrize(
    ("old", "key"),
    [('output = "out"', "run.output"), ('source = "b6.jsonl"', "source")],
)
def test_a_path_that_can_be_none_is_refused(value: str, words: str, old: str, key: str) -> None:
    name = old.partition(" ")[0]
    message = refused((HEAD + DATASET).replace(old, f'{name} = "{value}"'))
    assert f"{key}: {words}" in message


# --- where a key stands -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    [
        'note = """\n[limits]\nconcurrency = 1\n"""',
        "note = '''\n[[datasets]]\nit's # no comment\n'''",
        "note = [\n  [1],\n  ['a']\n]  # ]",
        "note = 'a # [[' # ['\n",
        'note = "\\" [" # x',
        "note = { a = [\n[limits]\n] }",
    ],
)
def test_what_stands_inside_a_value_is_no_place(before: str) -> None:
    text = f"[sampling]\n{before}\ntop_p = 1\n[limits]\nconcurrency = 0\n"
    lines = text.splitlines()
    assert line_of(text, ("sampling", "top_p")) == lines.index("top_p = 1") + 1
    assert line_of(text, ("limits", "concurrency")) == lines.index("concurrency = 0") + 1
    assert line_of(text.replace("\n", "\r\n"), ("limits",)) == len(lines) - 1


def test_quoted_keys_with_dots_are_found() -> None:
    text = '[endpoint.headers]\n"X.A" = "1"\n\'X.B\' = "2"\n[a."b.c"]\nd = 1\n'
    assert line_of(text, ("endpoint", "headers", "X.B")) == 3
    assert line_of(text, ("a", "b.c", "d")) == 5

"""Settings: where they come from, and that a key goes to its own host and nowhere else."""

from __future__ import annotations

import ast
import os
import traceback
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import SecretStr

from engine.errors import ExitCode, SettingsError, UsageError
from engine.settings import Settings, is_openrouter, key_for, load_settings

ROOT = Path(__file__).parents[2]
OPENROUTER = "https://openrouter.ai/api/v1"
HIDDEN = "sk-hidden"
ELSEWHERE = "https://openrouter.ai.evil.com/api/v1"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No setting of whoever runs the tests reaches them."""
    for name in list(os.environ):
        if name.upper().startswith(("EAGLEGEN_", "OPENROUTER_")):
            monkeypatch.delenv(name)
    return monkeypatch


def env_file(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / ".env").write_text(text)
    return folder


# --- sample.env -------------------------------------------------------------------------------


def explained() -> dict[str, str]:
    """The docstring under each field of the Settings class."""
    tree = ast.parse((ROOT / "engine" / "settings.py").read_text())
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Settings").body
    found = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[ast.unparse(field.target)] = ast.literal_eval(after.value)
    return found


def variable(name: str) -> str:
    alias = Settings.model_fields[name].validation_alias
    return f"EAGLEGEN_{name.upper()}" if alias is None else str(alias.choices[0])  # type: ignore[union-attr]


def test_sample_env_holds_every_setting_its_default_and_its_explanation() -> None:
    lines = (ROOT / "sample.env").read_text().splitlines()
    sample = {
        line.partition("=")[0]: (line.partition("=")[2], above.removeprefix("# "))
        for above, line in pairwise(lines)
        if "=" in line and not line.startswith("#")
    }
    texts = explained()
    assert texts.keys() == Settings.model_fields.keys()
    assert sample == {
        variable(name): ("" if field.default is None else str(field.default).lower(), texts[name])
        for name, field in Settings.model_fields.items()
    }


def test_a_copy_of_sample_env_changes_nothing(tmp_path: Path) -> None:
    env_file(tmp_path, (ROOT / "sample.env").read_text())
    assert load_settings(tmp_path).model_dump() == Settings().model_dump()


# --- where settings come from -----------------------------------------------------------------


def test_defaults() -> None:
    settings = load_settings()
    assert (settings.theme, settings.fps, settings.interval_s) == ("dark", 2.0, 5.0)
    assert (settings.api_key, settings.openrouter_api_key, settings.cache_dir) == (None,) * 3


def test_the_environment_goes_before_env_files_and_the_last_file_before_the_first(
    tmp_path: Path, bare: pytest.MonkeyPatch
) -> None:
    first = env_file(tmp_path / "a", "EAGLEGEN_THEME=a\nEAGLEGEN_FPS=1\nEAGLEGEN_INTERVAL_S=1\n")
    last = env_file(tmp_path / "b", "EAGLEGEN_THEME=b\nEAGLEGEN_FPS=3\n")
    bare.setenv("EAGLEGEN_THEME", "env")
    settings = load_settings(first, last)
    assert (settings.theme, settings.fps, settings.interval_s) == ("env", 3.0, 1.0)


def test_an_empty_variable_is_no_setting(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    folder = env_file(tmp_path, "OPENROUTER_API_KEY=sk-or-file\nEAGLEGEN_CACHE_DIR=\n")
    bare.setenv("OPENROUTER_API_KEY", "")
    bare.setenv("EAGLEGEN_FPS", "")
    settings = load_settings(folder)
    assert (settings.fps, settings.cache_dir) == (2.0, None)
    assert key_for(settings, OPENROUTER) == "sk-or-file"


def test_other_peoples_variables_and_missing_files_do_not_matter(
    tmp_path: Path, bare: pytest.MonkeyPatch
) -> None:
    folder = env_file(tmp_path, "OTHER=1\nEAGLEGEN_NO_SUCH=1\n# EAGLEGEN_FPS=9\n")
    bare.setenv("THEME", "unrelated")
    assert load_settings(folder, tmp_path / "none").theme == "dark"


def test_quotes_and_export_are_read_as_a_shell_would(tmp_path: Path) -> None:
    text = "export EAGLEGEN_API_KEY='sk-quoted'\nOPENROUTER_API_KEY=\"sk-or\"\r\n"
    settings = load_settings(env_file(tmp_path, text))
    assert key_for(settings, "http://localhost/v1") == "sk-quoted"
    assert settings.openrouter_api_key == SecretStr("sk-or")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("EAGLEGEN_FPS=fast", "EAGLEGEN_FPS: input should be a valid number"),
        ("EAGLEGEN_FPS=0", "EAGLEGEN_FPS: input should be greater than 0"),
        ("EAGLEGEN_FPS=60", "EAGLEGEN_FPS: input should be less than or equal to 10"),
        ("EAGLEGEN_INTERVAL_S=-1", "EAGLEGEN_INTERVAL_S: input should be greater than 0"),
        ("EAGLEGEN_INTERVAL_S=inf", "EAGLEGEN_INTERVAL_S: input should be less than or equal"),
        ("EAGLEGEN_INTERVAL_S=nan", "EAGLEGEN_INTERVAL_S: input should be"),
        ("EAGLEGEN_THEME='a\nb'", "EAGLEGEN_THEME: holds a control character"),
        ("EAGLEGEN_CACHE_DIR=a\x00", "EAGLEGEN_CACHE_DIR: holds a control character"),
        (
            "EAGLEGEN_TOKENIZER_PATH=~nobody-has-this-name/v",
            "EAGLEGEN_TOKENIZER_PATH: ~nobody-has-this-name is nobody's home folder",
        ),
    ],
)
def test_a_wrong_value_is_a_usage_error_that_names_the_variable(
    tmp_path: Path, line: str, words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(env_file(tmp_path, f"EAGLEGEN_API_KEY={HIDDEN}\n{line}\n"))
    assert words in caught.value.message
    assert caught.value.exit_code is ExitCode.USAGE
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))


def test_a_tilde_is_the_home_folder(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("HOME", "/home/me")
    text = "EAGLEGEN_CACHE_DIR=~/cache\nEAGLEGEN_TOKENIZER_PATH=~/v.model\n"
    settings = load_settings(env_file(tmp_path, text))
    assert settings.cache_dir == Path("/home/me/cache")
    assert settings.tokenizer_path == Path("/home/me/v.model")


def test_an_env_file_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, bare: pytest.MonkeyPatch
) -> None:
    folder = env_file(tmp_path, "EAGLEGEN_THEME=a\n")
    refusal = PermissionError(13, "Permission denied", str(folder / ".env"))

    def no_entry(*_args: object, **_more: object) -> None:
        raise refusal

    bare.setattr("builtins.open", no_entry)  # tests run as root, whom no mode keeps out
    with pytest.raises(SettingsError, match=r"\.env: cannot be read: Permission denied"):
        load_settings(folder)


def test_an_env_file_that_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"EAGLEGEN_THEME=\xff\xfe\n")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings(tmp_path)


# --- keys -------------------------------------------------------------------------------------


def both() -> Settings:
    return Settings(api_key=SecretStr("sk-any"), OPENROUTER_API_KEY=SecretStr("sk-or"))  # type: ignore[call-arg]


def only_openrouter() -> Settings:
    return Settings(OPENROUTER_API_KEY=SecretStr("sk-or"))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "url",
    [
        OPENROUTER,
        "https://openrouter.ai",
        "https://OpenRouter.AI/api/v1",
        "https://eu.openrouter.ai/v1",
    ],
)
def test_the_openrouter_key_goes_to_openrouters_own_host(url: str) -> None:
    assert is_openrouter(url)
    assert key_for(only_openrouter(), url) == "sk-or"


@pytest.mark.parametrize(
    "url",
    [
        ELSEWHERE,
        "https://openrouter.ai@evil.com/v1",
        "https://evil.com/openrouter.ai",
        "https://evil.com/?openrouter.ai",
        "https://evil.com#openrouter.ai",
        "https://evilopenrouter.ai/v1",
        "https://openrouter.ai.:443.evil.com/v1",
        "https://openrouter-ai.com/v1",
        "http://openrouter.ai/api/v1",  # not over TLS
        "http://127.0.0.1:8787/api/v1",
        "https://xn--openruter-p4a.ai/v1",
    ],
)
def test_the_openrouter_key_goes_nowhere_else(url: str) -> None:
    assert not is_openrouter(url)
    assert key_for(only_openrouter(), url) is None


@pytest.mark.parametrize("url", [OPENROUTER, ELSEWHERE, "http://127.0.0.1:8000/v1"])
def test_the_general_key_goes_to_the_endpoint_that_the_manifest_names(url: str) -> None:
    assert key_for(both(), url) == "sk-any"


def test_a_server_that_wants_no_key_gets_none() -> None:
    assert key_for(Settings(), "http://127.0.0.1:8000/v1") is None


def test_openrouter_without_a_key_is_a_usage_error_before_anything_is_sent() -> None:
    with pytest.raises(UsageError) as caught:
        key_for(Settings(), OPENROUTER)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "OPENROUTER_API_KEY" in caught.value.hint
    assert ".env" in caught.value.hint


def test_blanks_around_a_key_are_no_part_of_it() -> None:
    assert key_for(Settings(api_key=SecretStr(" sk-x\r\n")), ELSEWHERE) == "sk-x"
    assert key_for(Settings(api_key=SecretStr(" ")), ELSEWHERE) is None


@pytest.mark.parametrize("key", ["sk a", "sk-a\r\nX-Evil: 1", "sk-ü", "sk-\x00"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        key_for(Settings(api_key=SecretStr(key)), ELSEWHERE)
    assert key not in "".join(traceback.format_exception(caught.value))
    assert "sk" not in str(caught.value)


def test_no_key_is_in_any_text_of_the_settings() -> None:
    settings = both()
    texts = [
        repr(settings),
        str(settings),
        f"{settings}",
        settings.model_dump_json(),
        repr(settings.model_dump()),
        repr(vars(settings)),
    ]
    assert not any("sk-" in text for text in texts)

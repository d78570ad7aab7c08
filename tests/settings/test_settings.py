"""The sources of settings, and the errors for unusable ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.settings.errors import SettingsError
from perdure.settings.settings import load_settings

ROOT = Path(__file__).parents[2]

SHOW = "from perdure.settings.settings import load_settings; print(load_settings(user=FLAG).user)"


def load_user(folder: Path, flag: str | None = None, **environment: str) -> str:
    """Load the setting `user` in a program started in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW.replace("FLAG", repr(flag))],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_settings_have_a_precedence_from_flags_to_the_users_file(tmp_path: Path) -> None:
    assert load_user(tmp_path) == "local"
    own = tmp_path / "home" / ".config" / "perdure"
    own.mkdir(parents=True)
    (own / "perdure.toml").write_text('user = "mine"')
    assert load_user(tmp_path) == "mine"
    (tmp_path / "perdure.toml").write_text('user = "ours"')
    assert load_user(tmp_path) == "ours"
    assert load_user(tmp_path, PERDURE_USER="here") == "here"
    assert load_user(tmp_path, "now", PERDURE_USER="here") == "now"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_unknown_setting_is_refused_in_environment_and_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as environment:
        environment.setenv("PERDURE_USR", "x")
        with pytest.raises(SettingsError, match="There is no setting PERDURE_USR"):
            load_settings()
    (folder / "perdure.toml").write_text('usr = "x"')
    with pytest.raises(SettingsError, match="There is no setting 'usr'"):
        load_settings()


@pytest.mark.parametrize("text", ["user = ", "user = [1]"])
def test_an_invalid_settings_file_is_named_in_the_error(folder: Path, text: str) -> None:
    (folder / "perdure.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"perdure\.toml|'user'"):
        load_settings()


def test_an_error_names_the_source_of_the_refused_value(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "perdure.toml").write_text('store = 5\n[agents.a]\ntools = "x"\n[memory]\nindex = 1')
    for setting in ("store", "memory.index"):
        message = rf"The setting '{setting}' is not right \(in perdure\.toml\): "
        with pytest.raises(SettingsError, match=message):
            load_settings()
    monkeypatch.setenv("PERDURE_MEMORY", '{"index": 2}')
    with pytest.raises(SettingsError, match=r"'memory.index' is not right \(in PERDURE_MEMORY\): "):
        load_settings()
    monkeypatch.setenv("PERDURE_SANDBOX", "glass")
    with pytest.raises(SettingsError, match=r"'sandbox' is not right \(in PERDURE_SANDBOX\): "):
        load_settings()
    with pytest.raises(SettingsError, match="'sandbox' is not right: "):
        load_settings(sandbox="stone")


def test_model_rates_are_read_from_the_file_and_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "perdure.toml").write_text('[model_rates]\n"openai/gpt-5" = 500\n')
    assert load_settings().model_rates == {"openai/gpt-5": 500.0}
    monkeypatch.setenv("PERDURE_MODEL_RATES", '{"openai/gpt-5": 0.5}')
    assert load_settings().model_rates == {"openai/gpt-5": 0.5}


@pytest.mark.parametrize(
    ("value", "message"),
    [('{"a": 0}', "'model_rates.a'"), ("[1]", "'model_rates'"), ("{a", "no JSON")],
)
@pytest.mark.usefixtures("folder")
def test_an_invalid_model_rate_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    monkeypatch.setenv("PERDURE_MODEL_RATES", value)
    with pytest.raises(SettingsError, match=message):
        load_settings()


def test_the_tests_run_without_settings_of_this_machine() -> None:
    assert not [name for name in os.environ if name.startswith("PERDURE_")]


def test_variables_of_secrets_are_not_settings(tmp_path: Path) -> None:
    assert load_user(tmp_path, PERDURE_SECRET_API_TOKEN="0123456789") == "local"
    assert load_user(tmp_path, PERDURE_SECRETS=str(tmp_path)) == "local"

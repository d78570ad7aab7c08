"""Where a setting comes from, and what is said of one that cannot be used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SHOW = "from settings.settings import load; print(load(user=FLAG).user)"


def user(folder: Path, flag: str | None = None, **environment: str) -> str:
    """The `user` that a program started in `folder` would work as."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW.replace("FLAG", repr(flag))],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_flags_go_over_the_environment_over_the_file_over_the_users_file(tmp_path: Path) -> None:
    assert user(tmp_path) == "local"
    own = tmp_path / "home" / ".config" / "perdure"
    own.mkdir(parents=True)
    (own / "perdure.toml").write_text('user = "mine"')
    assert user(tmp_path) == "mine"
    (tmp_path / "perdure.toml").write_text('user = "ours"')
    assert user(tmp_path) == "ours"
    assert user(tmp_path, PERDURE_USER="here") == "here"
    assert user(tmp_path, "now", PERDURE_USER="here") == "now"


def test_a_setting_that_does_not_exist_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    assert "There is no setting PERDURE_USR" in user(tmp_path, PERDURE_USR="x")
    (tmp_path / "perdure.toml").write_text('usr = "x"')
    assert "There is no setting 'usr'" in user(tmp_path)


@pytest.mark.parametrize("text", ["user = ", "user = [1]"])
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "perdure.toml").write_text(text)
    said = user(tmp_path)
    assert "SettingsError" in said
    assert "perdure.toml" in said or "'user'" in said


def rates(folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from settings.settings import load; print(load().model_rates)"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_how_often_a_model_may_be_asked_stands_in_the_file_or_in_the_environment(
    tmp_path: Path,
) -> None:
    (tmp_path / "perdure.toml").write_text('[model_rates]\n"openai/gpt-5" = 500\n')
    assert rates(tmp_path) == "{'openai/gpt-5': 500.0}"
    assert rates(tmp_path, PERDURE_MODEL_RATES='{"openai/gpt-5": 0.5}') == "{'openai/gpt-5': 0.5}"


@pytest.mark.parametrize(
    ("given", "named"),
    [('{"a": 0}', "'model_rates.a'"), ("[1]", "'model_rates'"), ("{a", "no JSON")],
)
def test_a_rate_that_makes_no_sense_is_refused(tmp_path: Path, given: str, named: str) -> None:
    said = rates(tmp_path, PERDURE_MODEL_RATES=given)
    assert "SettingsError" in said
    assert named in said


def test_nothing_of_this_machine_is_read_by_the_tests() -> None:
    assert not [name for name in os.environ if name.startswith("PERDURE_")]


def test_the_values_of_secrets_are_no_settings(tmp_path: Path) -> None:
    assert user(tmp_path, PERDURE_SECRET_API_TOKEN="0123456789") == "local"
    assert user(tmp_path, PERDURE_SECRETS=str(tmp_path)) == "local"

"""A worker gets the named sandbox, or the strongest, with a description of it."""

import os
from pathlib import Path

import pytest

from perdure.sandbox.choice import SANDBOX_NAMES, choose_sandbox
from perdure.sandbox.sandbox import UNCONFINED, SandboxUnusable, describe
from tests.sandbox.running import set_up_sandbox


def test_auto_is_the_strongest_that_works(tmp_path: Path) -> None:
    working = [
        name for name in SANDBOX_NAMES[:-1] if name == "bubblewrap" and set_up_sandbox(name).sandbox
    ]
    if not working:
        pytest.skip(f"NOT CHECKED: {set_up_sandbox('bubblewrap').why}")
    choice = choose_sandbox("auto", tmp_path)
    assert choice.sandbox.name == "bubblewrap"
    assert choice.description.startswith(
        "bubblewrap, which does not protect from: a flaw in the kernel"
    )
    assert list(tmp_path.iterdir()) == [], "a trial leaves nothing"


def test_none_is_had_only_by_its_name(tmp_path: Path) -> None:
    assert choose_sandbox("none", tmp_path).sandbox is UNCONFINED
    assert describe(UNCONFINED) == {
        "name": "none",
        "does_not_protect_from": ["anything: commands run as the worker's own user"],
    }


def test_a_sandbox_that_does_not_work_is_refused_with_a_sentence(tmp_path: Path) -> None:
    other = "landlock" if os.geteuid() == 0 else "uid"
    with pytest.raises(
        SandboxUnusable, match=rf"The sandbox {other} is not for this worker's user\."
    ):
        choose_sandbox(other, tmp_path)
    with pytest.raises(
        SandboxUnusable, match="There is no sandbox 'strong': the sandboxes are auto, "
    ):
        choose_sandbox("strong", tmp_path)


def test_a_folder_that_cannot_be_used_is_no_sandbox(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxUnusable, match="The sandbox bubblewrap does not work here: "):
        choose_sandbox("bubblewrap", tmp_path / "file")

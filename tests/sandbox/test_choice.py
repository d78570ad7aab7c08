"""A worker gets the sandbox that it asks for, or the strongest one; and it is said which."""

import os
from pathlib import Path

import pytest

from sandbox.choice import NAMES, choose
from sandbox.sandbox import NONE, Unusable, described
from tests.sandbox.running import column


def test_auto_is_the_strongest_that_works(tmp_path: Path) -> None:
    working = [name for name in NAMES[:-1] if name == "bubblewrap" and column(name).sandbox]
    if not working:
        pytest.skip(f"NOT CHECKED: {column('bubblewrap').why}")
    choice = choose("auto", tmp_path)
    assert choice.sandbox.name == "bubblewrap"
    assert choice.told.startswith("bubblewrap, which does not protect from: a flaw in the kernel")
    assert list(tmp_path.iterdir()) == [], "a trial leaves nothing"


def test_none_is_had_only_by_its_name(tmp_path: Path) -> None:
    assert choose("none", tmp_path).sandbox is NONE
    assert described(NONE) == {
        "name": "none",
        "does_not_protect_from": ["anything: commands run as the worker's own user"],
    }


def test_what_does_not_work_is_refused_in_a_sentence(tmp_path: Path) -> None:
    other = "landlock" if os.geteuid() == 0 else "uid"
    with pytest.raises(Unusable, match=rf"The sandbox {other} is not for this worker's user\."):
        choose(other, tmp_path)
    with pytest.raises(Unusable, match="There is no sandbox 'strong': the sandboxes are auto, "):
        choose("strong", tmp_path)


def test_a_folder_that_cannot_be_used_is_no_sandbox(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="The sandbox bubblewrap does not work here: "):
        choose("bubblewrap", tmp_path / "file")

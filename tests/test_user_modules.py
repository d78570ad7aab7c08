"""Modules of users are imported anew once a file of theirs has changed, and nothing else is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.references import BadReference, import_reference
from perdure.user_modules import USER_MODULES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, which is the current one; other folders are in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    USER_MODULES.accepts_client_folders = False
    USER_MODULES.use_client_folder(None)
    USER_MODULES.folders.remove(str(tmp_path))
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, source: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)


def test_a_changed_helper_is_in_force_after_a_refresh(folder: Path) -> None:
    write(folder / "own_a.py", "import own_b\ndef f(): return own_b.X")
    write(folder / "own_b.py", "X = 1")
    old = import_reference("own_a:f")
    version = USER_MODULES.refresh()
    write(folder / "own_b.py", "X = 2")  # as long, and within the same second
    assert import_reference("own_a:f") is old
    assert USER_MODULES.refresh() != version
    assert (import_reference("own_a:f")(), old()) == (2, 1)


def test_what_has_not_changed_stays(folder: Path) -> None:
    write(folder / "own_c.py", "def f(): ...")
    import_reference("own_c:f")
    USER_MODULES.refresh()
    kept, version = import_reference("own_c:f"), USER_MODULES.refresh()
    write(folder / "own_note.txt", "no module")
    assert USER_MODULES.refresh() == version
    assert import_reference("own_c:f") is kept


def test_a_module_that_a_function_imports_is_reloaded_too(folder: Path) -> None:
    write(folder / "own_d.py", "def f():\n    import own_e\n    return own_e.X")
    write(folder / "own_e.py", "X = 1")
    assert import_reference("own_d:f")() == 1
    USER_MODULES.refresh()
    write(folder / "own_e.py", "X = 22")
    USER_MODULES.refresh()
    assert import_reference("own_d:f")() == 22


def test_a_module_that_cannot_be_imported_any_more_is_named_with_its_line(folder: Path) -> None:
    write(folder / "own_g.py", "def f(): ...")
    import_reference("own_g:f")
    write(folder / "own_g.py", "\ndef f(:")
    USER_MODULES.refresh()
    with pytest.raises(BadReference, match=rf"SyntaxError: .*, at {folder}/own_g\.py:2"):
        import_reference("own_g:f")
    write(folder / "own_g.py", "def f(): return 3")
    USER_MODULES.refresh()
    assert import_reference("own_g:f")() == 3


def test_modules_of_two_clients_never_meet(folder: Path) -> None:
    USER_MODULES.accepts_client_folders = True
    for name in ("one", "two"):
        write(folder / name / "own_tool.py", "from own_words import X\ndef f(): return X")
        write(folder / name / "own_words.py", f"X = {name!r}")
    for name in ("one", "two", "one"):
        USER_MODULES.use_client_folder(str(folder / name))
        assert import_reference("own_tool:f")() == name
    assert not {str(folder / "one"), str(folder / "two")} & set(sys.path)


def test_a_client_cannot_name_a_folder_unless_it_may(folder: Path) -> None:
    write(folder / "one" / "own_h.py", "def f(): ...")
    USER_MODULES.use_client_folder(str(folder / "one"))
    with pytest.raises(BadReference, match="module 'own_h' cannot be found"):
        import_reference("own_h:f")

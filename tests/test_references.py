"""References lead to code of the user's folder and of packages, or to a sentence."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.references import BadReference, import_reference, load_entry_point
from tests.distributions import installed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if name.startswith("my_") or (file or "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(folder: Path, **sources: str) -> None:
    for name, source in sources.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


def test_a_reference_leads_into_the_current_folder(folder: Path) -> None:
    write(folder, my_tools__weather="from my_tools.words import RAIN\nclass A:\n    b = RAIN")
    write(folder, my_tools__words="RAIN = 'rain'")
    assert import_reference("my_tools.weather:A.b") == "rain"


def test_a_folder_of_the_user_comes_before_an_installed_package(folder: Path) -> None:
    write(folder, my_models__echo="NAME = 'mine'")
    with installed(folder / "site", {"my_models.py": "NAME = 'theirs'"}, {}):
        assert import_reference("my_models.echo:NAME") == "mine"


def test_a_folder_of_the_user_hides_no_library_from_an_import(folder: Path) -> None:
    write(folder, my_library="WHOSE = 'mine'", my_scorers="import my_library as it")
    with installed(folder / "site", {"my_library.py": "WHOSE = 'theirs'"}, {}):
        assert import_reference("my_scorers:it.WHOSE") == "theirs"
    assert sys.path[-1] == str(folder)
    assert sys.path[0] != str(folder)


def test_a_folder_of_data_hides_no_library(folder: Path) -> None:
    (folder / "colorsys").mkdir()
    (folder / "colorsys" / "rows.json").write_text("[]")
    assert import_reference("colorsys:rgb_to_hsv")(0, 0, 0) == (0, 0, 0)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("my_none:a", "module 'my_none' cannot be found: it is not installed, and not in "),
        ("my_pack.none:a", "module 'my_pack.none' cannot be found"),
        ("my_broken:a", "module 'my_broken' cannot be imported: ZeroDivisionError: division by"),
        ("my_needy:a", "cannot be imported: ModuleNotFoundError: No module named 'my_missing'"),
        ("my_exit:a", "module 'my_exit' cannot be imported: SystemExit: 3"),
        ("my_fine:b", "module 'my_fine' has no attribute 'b': it has a, LIMIT"),
        ("my_empty:b", "module 'my_empty' has no attribute 'b': it has nothing of its own"),
        ("my_fine", "it is not written as module:attribute"),
        (":a", "it is not written as module:attribute"),
    ],
)
def test_a_reference_that_leads_nowhere_says_why(folder: Path, reference: str, why: str) -> None:
    write(folder, my_broken="1 / 0", my_needy="import my_missing", my_exit="raise SystemExit(3)")
    write(folder, my_fine="import os\nfrom json import loads\ndef a(): ...\nLIMIT = 3\n_b = 1")
    write(folder, my_empty="", my_pack__one="")
    with pytest.raises(BadReference) as raised:
        import_reference(reference)
    assert why in str(raised.value)


def test_an_entry_point_that_is_not_there_is_named_with_the_others(folder: Path) -> None:
    points = {"perdure.tools": {"a": "my_a:a", "b": "my_a:b"}}
    with (
        installed(folder / "site", {}, points),
        pytest.raises(BadReference, match="no package has 'c' among its"),
    ):
        load_entry_point("perdure.tools", "c")

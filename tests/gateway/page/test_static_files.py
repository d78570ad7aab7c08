"""The files of the page: its own, which are small, and vendored ones with their hashes."""

import hashlib
import re

import pytest

from perdure.gateway.page.files import FOLDER, load_files
from tests.gateway.page.static_files import DYNAMIC_IMPORT, IMPORT, find_loaded, resolve

FILES = load_files()
OWN = {path: file for path, file in FILES.files.items() if not path.startswith("vendor/")}
VENDOR = FOLDER / "vendor"
ROW = re.compile(r"^\| (\S+) \| (\S+) \| (\S+) \| ([^|]+) \| ([0-9a-f]{64}) \|$", re.MULTILINE)
LINE_LIMIT = 310

VIEWS = {
    "list": ("list/view.js",),
    "conversation": ("conversation/view.js",),
    "new": ("compose/new_view.js",),
    "schedules": ("schedules/view.js",),
    "webhooks": ("webhooks/view.js",),
    "agents": ("agents/view.js",),
    "memory": ("memory/view.js",),
    "keys": ("keys/view.js",),
    "discussions": ("discussions/list_view.js",),
    "discussion": ("discussions/view.js",),
}


def test_the_table_of_vendored_files_is_that_of_the_files() -> None:
    rows = ROW.findall((VENDOR / "README.md").read_text())
    stated = {path: sha for path, _, _, _, sha in rows}
    files = (path for path in VENDOR.rglob("*") if path.is_file() and path.name != "README.md")
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    assert stated == found


def test_each_vendored_library_has_its_licence_beside_it() -> None:
    folders = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert len(folders) >= 6
    assert all((folder / "LICENSE").read_text() for folder in folders)


@pytest.mark.parametrize("view", VIEWS)
def test_a_first_load_is_under_80_kilobytes(view: str) -> None:
    paths = find_loaded(FILES, *VIEWS[view])
    assert len(paths) > 10
    assert sum(len(FILES.files[path].gzipped) for path in paths) < 80_000


def test_every_module_that_is_imported_is_there() -> None:
    for path, file in FILES.files.items():
        if not path.endswith(".js"):
            continue
        text = file.content.decode()
        for module in resolve(path, [*IMPORT.findall(text), *DYNAMIC_IMPORT.findall(text)]):
            if "${" not in module:
                assert module in FILES.files, f"{path} imports {module}"


def test_every_language_that_has_colours_is_vendored() -> None:
    text = OWN["text/highlight.js"].content.decode()
    names = re.search(r'new Set\(\s*"([^"]+)"\.split', text)
    assert names is not None
    for name in names[1].split():
        assert f"vendor/highlight/languages/{name}.min.js" in FILES.files


def test_no_file_of_ours_has_markup_that_the_policy_forbids() -> None:
    """Scripts and styles are files; nothing turns a text into HTML but the sanitizer."""
    for path, file in OWN.items():
        text = file.content.decode()
        assert not re.search(r"\bon\w+=[\"']|\bstyle=[\"'$]|<style|<script>", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|unsafeHTML|\beval\(", text), (
            path
        )


def test_no_file_of_ours_names_another_host() -> None:
    for path, file in OWN.items():
        hosts = set(re.findall(r"https?://([\w.-]+)", file.content.decode()))
        assert hosts <= {"www.w3.org"}, path


def test_the_files_of_ours_are_small() -> None:
    for path, file in OWN.items():
        if path.endswith(".js"):
            assert len(file.content.decode().splitlines()) <= LINE_LIMIT, path


def test_a_change_of_any_file_changes_the_digest() -> None:
    name = "main.js"
    changed = dict(FILES.files)
    changed[name] = type(changed[name])(name, changed[name].content + b"\n")
    assert type(FILES)(changed).digest != FILES.digest

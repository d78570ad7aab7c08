"""Tool calls as an editor shows them."""

from typing import Any

import pytest

from perdure.acp.projection import (
    Projection,
)
from perdure.gateway.turns.parts import (
    Called,
    Returned,
)
from tests.acp.test_projections import ADD, MAY_WAIT, RETURNED, call, project

CALLS: dict[str, tuple[Called, str, str]] = {
    "a command": (call("terminal", command="ls\npwd"), "execute", "ls"),
    "a long command": (call("terminal", command="x" * 200), "execute", "x" * 119 + "…"),
    "an edit": (call("file_editor", command="create", path="a"), "edit", "create a"),
    "a view": (call("file_editor", command="view", path="a"), "read", "view a"),
    "a patch": (call("apply_patch", patch="…"), "edit", "apply_patch"),
    "a search": (call("grep", pattern="a+"), "search", "grep a+"),
    "a search for files": (call("glob", pattern="*.py"), "search", "glob *.py"),
    "a thought": (call("think", thought="Hm."), "think", "think"),
    "braces": (call("terminal", command="echo {a}"), "execute", "echo {a}"),
    "another tool": (call("add", a=1), "other", "add"),
    "no JSON": (Called("a", "c", "terminal", "{"), "execute", "terminal"),
    "no object": (Called("a", "c", "terminal", "[1]"), "execute", "terminal"),
    "nothing to run": (call("terminal", command=" "), "execute", "terminal"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_shown_by_what_it_does(name: str) -> None:
    called, kind, title = CALLS[name]
    shown = project(called)[0]
    assert (shown["kind"], shown["title"], shown["toolCallId"]) == (kind, title, "c")


def test_a_call_whose_id_was_used_before_is_another_one() -> None:
    ids = [update["toolCallId"] for update in project(ADD, RETURNED, ADD, RETURNED, MAY_WAIT)]
    assert ids == ["c"] * 3 + ["c#2"] * 3 + ["c#3"]


def test_a_call_has_its_arguments_and_its_result_as_they_were() -> None:
    begun, _, done = project(ADD, RETURNED)
    assert (begun["rawInput"], done["rawOutput"]) == ({"a": 1}, "5")
    assert done["content"] == [{"type": "content", "content": {"type": "text", "text": "5"}}]


DIFFS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "a new file": (
        {"command": "create", "path": "a", "file_text": "5"},
        {"type": "diff", "path": "/work/a", "newText": "5"},
    ),
    "a replacement": (
        {"command": "str_replace", "path": "b/a", "old_str": "5", "new_str": "6"},
        {"type": "diff", "path": "/work/b/a", "oldText": "5", "newText": "6"},
    ),
    "a removal": (
        {"command": "str_replace", "path": "a", "old_str": "5"},
        {"type": "diff", "path": "/work/a", "oldText": "5", "newText": ""},
    ),
    "new lines": (
        {"command": "insert", "path": "/else/a", "insert_line": 3, "new_str": "6"},
        {"type": "diff", "path": "/else/a", "oldText": "", "newText": "6"},
    ),
    "a view": ({"command": "view", "path": "a"}, None),
    "an edit that is taken back": ({"command": "undo_edit", "path": "a"}, None),
    "no path": ({"command": "create", "file_text": "5"}, None),
}


@pytest.mark.parametrize("name", DIFFS)
def test_an_edit_shows_what_it_changes(name: str) -> None:
    arguments, diff = DIFFS[name]
    edit, result = call("file_editor", **arguments), Returned("c", "file_editor", "Done.")
    begun, _, done = project(edit, result)
    assert begun.get("content") == (None if diff is None else [diff])
    text = {"type": "content", "content": {"type": "text", "text": "Done."}}
    assert done["content"] == ([text] if diff is None else [diff, text])
    *_, failed = project(edit, Returned("c", "file_editor", "Done.", is_error=True))
    assert failed["content"] == [text]
    places = [{"path": f"{arguments['path']}"}] if "path" in arguments else None
    if places and not arguments["path"].startswith("/"):
        places = [{"path": f"/work/{arguments['path']}"}]
    assert begun.get("locations") == places


def test_paths_of_another_kind_of_machine_are_put_together() -> None:
    edit = call("file_editor", command="view", path="a")
    [shown, _] = Projection("/").take(edit)
    assert shown["locations"] == [{"path": "/a"}]

"""Searches find what git would look at, nothing outside of the workspace, and always end."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.tools import ripgrep
from perdure.tools.glob import GLOB
from perdure.tools.grep import GREP
from perdure.tools.ripgrep import Report
from perdure.tools.workspace import resolve_in_workspace
from tests.sandbox.running import set_up_sandbox
from tests.tools.conftest import ToolBench
from tests.tools.processes import find_processes, wait_until
from tests.tools.searching import fill, refusal, run_tool, write


async def files(place: ToolBench, **arguments: str) -> set[str]:
    text = await run_tool(GLOB, place, **{"pattern": "**", **arguments})
    return set() if text.startswith("No file matches") else set(text.splitlines())


async def test_every_file_is_found_but_what_version_control_keeps_for_itself(
    place: ToolBench,
) -> None:
    fill(place.workspace, a="", b__c="", b__d__e="")
    for name in (".hidden", ".github/workflow.yml", ".git/config", "b/.hg/x", ".svn/x"):
        write(place.workspace, name, "")
    assert await files(place) == {"a", "b/c", "b/d/e", ".hidden", ".github/workflow.yml"}
    assert await files(place, path="b") == {"b/c", "b/d/e"}
    assert await files(place, path=".git") == {".git/config"}


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("a", {"b/c", "b/log.txt", "b/d/e"}),
        ("b/", {"a"}),
        ("/c\n/b/d", {"a", "b/c", "b/log.txt"}),
        ("*\n!a", {"a"}),
        ("*.txt\n!log.txt", {"a", "b/c", "b/d/e", "b/log.txt"}),
        ("b/*\n!b/c", {"a", "b/c"}),
        ("**/e", {"a", "b/c", "b/log.txt"}),
        ("c\r\na\r\n", {"b/log.txt", "b/d/e"}),
        ("[ab]\n.gitignore", set[str]()),
    ],
)
async def test_what_gitignore_names_is_left_out(
    place: ToolBench, rules: str, left: set[str]
) -> None:
    fill(place.workspace, a="x", b__c="x", b__d__e="x", b__log="")
    (place.workspace / "b/log").rename(place.workspace / "b/log.txt")
    write(place.workspace, "b/log.txt", "x")
    write(place.workspace, ".gitignore", rules)
    for pattern in ("**", "*", "{**/,}*"):
        assert await files(place, pattern=pattern) - {".gitignore"} == left
    for include in ({}, {"include": "*"}, {"include": "**/[!.]*"}):
        listing = await run_tool(
            GREP, place, pattern="x", output_mode="files_with_matches", **include
        )
        assert set(listing.splitlines()) - {".gitignore"} == (left or {listing})


async def test_inner_rules_come_first_and_hold_from_where_they_stand(place: ToolBench) -> None:
    fill(place.workspace, a="", b__a="", b__c__a="", b__x="")
    write(place.workspace, ".gitignore", "a")
    write(place.workspace, "b/.gitignore", "!/a\nx")
    assert await files(place) == {".gitignore", "b/.gitignore", "b/a"}


async def test_rules_above_the_start_hold_unless_they_forbid_the_start(place: ToolBench) -> None:
    fill(place.workspace, build__x="", build__y="", src__x="", src__y="")
    write(place.workspace, ".gitignore", "build\nx")
    assert await files(place, path="src") == {"src/y"}
    assert await files(place, path="build") == {"build/x", "build/y"}


async def test_rules_above_the_workspace_and_behind_links_do_not_hold(place: ToolBench) -> None:
    write(place.workspace.parent, ".gitignore", "a")
    write(place.workspace.parent, "outside", "a")
    fill(place.workspace, a="")
    (place.workspace / "b").mkdir()
    assert await files(place) == {"a"}


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*.py", {"a.py", "s[1]/b.py", "s[1]/t/c.py"}),
        ("./*.py", {"a.py"}),
        ("s*/*.py", {"s[1]/b.py"}),
        ("s*/**/*.py", {"s[1]/b.py", "s[1]/t/c.py"}),
        ("**/t/*", {"s[1]/t/c.py", "s[1]/t/d.ts"}),
        ("?.[!t]*", {"a.py", "s[1]/b.py", "s[1]/t/c.py"}),
        ("{a,s*/{x,t/c}}.py", {"a.py", "s[1]/t/c.py"}),
        ("*.{ts,tsx}", {"s[1]/t/d.ts"}),
        ("A.py", set[str]()),
        ("!a.py", set[str]()),
    ],
)
async def test_a_pattern_matches(place: ToolBench, pattern: str, matches: set[str]) -> None:
    for name in ("a.py", "s[1]/b.py", "s[1]/t/c.py", "s[1]/t/d.ts"):
        write(place.workspace, name, "")
    assert await files(place, pattern=pattern) == matches


async def test_a_pattern_is_read_from_the_path_on(place: ToolBench) -> None:
    fill(place.workspace, x__y="", y="")
    write(place.workspace, "s[1]/x/y", "")
    assert await files(place, pattern="./x/*", path="s[1]") == {"s[1]/x/y"}


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("{" * 1001, "The pattern has 1,001 characters: use at most 1,000."),
        ("a{b", "error parsing glob"),
    ],
)
async def test_a_pattern_that_cannot_be_used_is_refused(
    place: ToolBench, pattern: str, sentence: str
) -> None:
    assert sentence in await refusal(GLOB, place, pattern=pattern)
    assert sentence in await refusal(GREP, place, pattern="x", include=pattern)


async def test_pipes_and_names_that_are_no_text_do_no_harm(place: ToolBench) -> None:
    os.mkfifo(place.workspace / "pipe")
    (place.workspace / os.fsdecode(b"a\xff")).write_text("x")
    assert await files(place) == {"a�"}
    assert await run_tool(GREP, place, pattern="x") == "a�:1:x"
    assert await run_tool(GREP, place, pattern="x", include="a*") == "a�:1:x"


async def test_what_cannot_be_read_is_counted() -> None:
    report = Report(errors="rg: a: Permission denied (os error 13)\nrg: b: gone (os error 2)\n")
    assert report.notes() == ["[2 files or directories could not be read]"]


async def test_only_so_many_files_are_listed(
    place: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "MAX_FILES", 2)
    fill(place.workspace, a="", b="", c="")
    assert await run_tool(GLOB, place, pattern="*") == (
        "c\nb\n[Only 2 files were looked at: give a narrower `path`]"
    )


async def blocked(place: ToolBench, token: str, report: Report) -> None:
    """Search in a pipe to which nobody writes."""
    os.mkfifo(place.workspace / token)
    start = resolve_in_workspace(place.workspace, token)
    await ripgrep.run(place.context, start, ["--regexp=x"], lambda _: True, report)


async def test_a_search_that_takes_too_long_is_stopped(
    place: ToolBench, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "TIMEOUT", 0.5)
    await blocked(place, token, report := Report())
    assert report.notes() == ["[The search took too long and was stopped: give a narrower `path`]"]


async def test_who_no_longer_waits_stops_the_search(place: ToolBench, token: str) -> None:
    task = asyncio.ensure_future(blocked(place, token, Report()))
    await wait_until(lambda: find_processes(token))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not find_processes(token)


@pytest_asyncio.fixture(params=["bubblewrap", "uid", "landlock"])
async def walled(request: pytest.FixtureRequest, place: ToolBench) -> AsyncIterator[ToolBench]:
    candidate = set_up_sandbox(request.param)
    if candidate.sandbox is None:
        pytest.skip(f"NOT CHECKED: {candidate.why}")
    with tempfile.TemporaryDirectory(prefix="sandboxed-") as made:
        Path(made).chmod(0o755)  # pytest's own folders are closed to other users
        workspace = Path(made, "workspace")
        workspace.mkdir()
        yield replace(
            place, context=replace(place.context, workspace=workspace, sandbox=candidate.sandbox)
        )


async def test_searches_work_in_a_sandbox_and_end_in_it(walled: ToolBench, token: str) -> None:
    fill(walled.workspace, a="x\n", s__b="x\ny\n")
    assert await run_tool(GREP, walled, pattern="x") == "s/b:1:x\na:1:x"
    assert await files(walled, path="s") == {"s/b"}
    assert "regular expression" in await refusal(GREP, walled, pattern="a(")
    task = asyncio.ensure_future(blocked(walled, token, Report()))
    await wait_until(lambda: find_processes(token))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until(lambda: not find_processes(token))

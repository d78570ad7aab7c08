"""Cloning from a real git server: whole or not at all, and with the token seen by nobody."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.activities.support.clone_limits import CloneLimits
from perdure.activities.workspace.repository.clone import (
    Place,
    Repository,
    clone_repository,
)
from perdure.activities.workspace.repository.errors import CloneFailed, CloneUnavailable
from perdure.sandbox.choice import choose_sandbox
from perdure.sandbox.sandbox import UNCONFINED
from tests.git_server import TOKEN, GitServer, serve_git

LIMITS = CloneLimits(size=64 << 20, seconds=60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    folder = tmp_path / "repositories"
    folder.mkdir()
    with serve_git(folder) as served:
        yield served


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path / "workspace", UNCONFINED, "the-conversation")


async def clone(repository: Repository, place: Place, limits: CloneLimits = LIMITS) -> str:
    return await clone_repository(repository, place, limits, lambda _: None)


def names_in(place: Place) -> list[str]:
    return sorted(path.name for path in place.workspace.iterdir())


def head_of(place: Place, directory: str) -> str:
    arguments = ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"]
    done = subprocess.run(
        arguments, cwd=place.workspace / directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


async def test_a_repository_is_cloned_with_its_files_and_its_history(
    server: GitServer, place: Place
) -> None:
    url = server.create("owner/project", {"README": "Hello.", "src/a.py": "1"})
    lines: list[str] = []
    commit = await clone_repository(Repository(url), place, LIMITS, lines.append)
    assert (place.workspace / "project/README").read_text() == "Hello."
    assert (place.workspace / "project/src/a.py").read_text() == "1"
    assert commit == head_of(place, "project")
    assert lines[0] == f"Cloning {url} into project ..."
    assert names_in(place) == ["project"]


async def test_a_branch_is_checked_out(server: GitServer, place: Place) -> None:
    url = server.create("project", {"README": "main"})
    server.commit("project", {"README": "other"}, branch="feature/x")
    await clone(Repository(url, "feature/x"), place)
    assert (place.workspace / "project/README").read_text() == "other"


async def test_an_empty_repository_is_a_clone_without_a_commit(
    server: GitServer, place: Place
) -> None:
    assert await clone(Repository(server.create("empty")), place) == ""
    assert (place.workspace / "empty/.git").is_dir()


@pytest.mark.long
async def test_a_token_opens_a_private_repository_and_stands_nowhere(
    server: GitServer, place: Place
) -> None:
    url = server.create("private/project", {"README": "secret"})
    server.delay = 0.3
    repository = Repository(url, token=TOKEN, token_name="REPO_TOKEN")
    cloning = asyncio.create_task(clone(repository, place))
    seen: set[bytes] = set()
    while not cloning.done():
        seen |= read_processes()
        await asyncio.sleep(0.02)
    await cloning
    assert (place.workspace / "project/README").read_text() == "secret"
    assert any(b"git-remote-http" in process for process in seen), "git was seen at work"
    assert [process for process in seen if TOKEN.encode() in process] == []
    assert TOKEN not in repr(repository)
    files = [path for path in place.workspace.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert f"url = {url}" in (place.workspace / "project/.git/config").read_text()


async def test_git_works_in_the_sandbox_of_commands(server: GitServer, tmp_path: Path) -> None:
    url = server.create("private/project", {"README": "secret"})
    own_folders = tmp_path / "workspaces"
    (own_folders / "own").mkdir(parents=True)
    sandbox = choose_sandbox("auto", own_folders).sandbox
    walled = Place(own_folders / "own", sandbox, "the-conversation")
    await clone(Repository(url, token=TOKEN, token_name="REPO_TOKEN"), walled)
    assert (walled.workspace / "project/README").read_text() == "secret"


def read_processes() -> set[bytes]:
    """Return the arguments and the environments of all processes, as far as they can be read."""
    texts = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            texts.add(process.joinpath("cmdline").read_bytes())
            if process.name != str(os.getpid()):
                texts.add(process.joinpath("environ").read_bytes())
        except OSError:
            continue
    return texts


@pytest.mark.parametrize(
    ("name", "fields", "code", "words"),
    [
        ("nothing", {}, "repository_not_found", "There is no repository at"),
        ("public", {"branch": "gone"}, "branch_not_found", "has no branch or tag 'gone'"),
        ("private/own", {}, "repository_private", "asks for a token"),
        (
            "private/own",
            {"token": "a-wrong-token", "token_name": "REPO_TOKEN"},
            "token_refused",
            "refuses the token in the secret REPO_TOKEN",
        ),
        ("private/own", {"token": "two\nlines"}, "token_refused", "is not one line"),
    ],
)
async def test_what_cannot_be_cloned_is_explained_and_leaves_nothing(
    server: GitServer, place: Place, name: str, fields: dict[str, str], code: str, words: str
) -> None:
    for each in ("public", "private/own"):
        server.create(each, {"README": "Hello."})
    with pytest.raises(CloneFailed) as failed:
        await clone(Repository(f"{server.url}/{name}.git", **fields), place)
    sentence = str(failed.value)
    assert (failed.value.code, words in sentence, "\n" in sentence) == (code, True, False), sentence
    assert "a-wrong-token" not in sentence
    assert names_in(place) == []


async def test_a_server_that_fails_or_is_not_there_may_be_there_later(
    server: GitServer, place: Place
) -> None:
    url = server.create("project", {"README": "Hello."})
    server.failures = [503]
    with pytest.raises(CloneUnavailable, match="does not answer"):
        await clone(Repository(url), place)
    await clone(Repository(url), place)
    with pytest.raises(CloneUnavailable, match="does not answer"):
        await clone(Repository("http://127.0.0.1:1/other"), place)


@pytest.mark.long
async def test_a_huge_repository_is_stopped_at_its_limit(server: GitServer, place: Place) -> None:
    noise = os.urandom(2 << 20).hex()
    url = server.create("huge", {"noise": noise})
    with pytest.raises(CloneFailed, match="has more than 1,048,576 bytes") as failed:
        await clone(Repository(url), place, replace(LIMITS, size=1 << 20))
    assert failed.value.code == "repository_too_large"
    assert names_in(place) == []


async def test_a_clone_that_takes_too_long_is_stopped(server: GitServer, place: Place) -> None:
    url = server.create("slow", {"README": "Hello."})
    server.delay = 5
    with pytest.raises(CloneFailed, match=r"took over 0\.5 s and was stopped") as failed:
        await clone(Repository(url), place, replace(LIMITS, seconds=0.5))
    assert failed.value.code == "clone_timeout"
    assert names_in(place) == []


async def test_half_a_clone_is_begun_anew_and_a_whole_one_is_adopted(
    server: GitServer, place: Place
) -> None:
    url = server.create("project", {"README": "Hello."})
    half = place.workspace / f"{place.partial_prefix}of-a-lost-worker"
    (half / ".git").mkdir(parents=True)
    others = place.workspace / ".perdure-clone-another-conversation-x"
    others.mkdir()
    commit = await clone(Repository(url), place)
    assert names_in(place) == [others.name, "project"]
    asked = len(server.requests)
    assert await clone(Repository(url), place) == commit
    assert len(server.requests) == asked, "nothing was cloned a second time"


async def test_what_stands_in_the_place_is_left_alone(server: GitServer, place: Place) -> None:
    url = server.create("project", {"README": "Hello."})
    (place.workspace / "project").mkdir()
    (place.workspace / "project/mine").write_text("mine")
    with pytest.raises(CloneFailed, match="there is a 'project' in the workspace already"):
        await clone(Repository(url), place)
    assert (place.workspace / "project/mine").read_text() == "mine"


async def test_another_conversation_does_not_take_the_clone_for_its_own(
    server: GitServer, place: Place
) -> None:
    url = server.create("project", {"README": "Hello."})
    await clone(Repository(url), place)
    with pytest.raises(CloneFailed, match="already"):
        await clone(Repository(url), replace(place, conversation_id="another"))


async def test_nothing_that_a_repository_brings_is_run(server: GitServer, place: Place) -> None:
    traps = {
        ".gitattributes": "* filter=trap\n",
        ".gitmodules": '[submodule "x"]\n path = x\n url = ext::sh -c "touch trapped"\n',
        "hooks/post-checkout": "#!/bin/sh\ntouch trapped\n",
    }
    await clone(Repository(server.create("traps", traps)), place)
    assert [path.name for path in place.workspace.rglob("trapped")] == []
    assert not (place.workspace / "traps/.git/hooks").exists()


async def test_a_clone_that_is_cancelled_ends_its_git(server: GitServer, place: Place) -> None:
    url = server.create("slow", {"README": "Hello."})
    server.delay = 5
    cloning = asyncio.create_task(clone(Repository(url), place))
    while not server.requests:
        await asyncio.sleep(0.02)
    cloning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cloning
    assert names_in(place) == []
    assert not any(url.encode() in process for process in read_processes())

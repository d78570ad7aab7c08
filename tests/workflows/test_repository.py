"""Conversations that begin with the clone of a repository."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from perdure.activities.support.clone_limits import CloneLimits
from perdure.agent.spec import Agent
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.messages import RecallEvent
from perdure.operations.worker.process import workspace_queue
from perdure.secrets.registry import Secrets
from tests.git_server import TOKEN, GitServer, serve_git
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.secrets.keys import key_ring, key_setting
from tests.workers import worker_process
from tests.workflows.watching import events, observations, workspace

COMMIT = "cd project && echo more > more.txt && git add . && git commit -qm more && git log -1"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    folder = tmp_path / "repositories"
    folder.mkdir()
    with serve_git(folder) as served:
        yield served


@pytest.fixture
def home(harness: ConversationHarness) -> ConversationHarness:
    """A harness whose worker keeps files, lends the token, and clones little."""
    resources = replace(
        harness.resources,
        home=workspace_queue(harness.resources.workspaces, harness.client.task_queue),
        secrets=Secrets(environment={"PERDURE_SECRET_REPO_TOKEN": TOKEN}),
        clone_limits=CloneLimits(size=1 << 20, seconds=20),
    )
    return replace(harness, resources=resources)


@pytest_asyncio.fixture
async def working(home: ConversationHarness) -> AsyncIterator[ConversationHarness]:
    async with home.worker():
        yield home


def agent(harness: ConversationHarness, *answers: dict[str, Any], **fields: Any) -> Agent:
    return harness.spec(*answers, tools=("terminal",), **fields)


async def clones(talk: Conversation) -> list[ConversationStateUpdateEvent]:
    updates = await events(talk, ConversationStateUpdateEvent)
    return [event for event in updates if event.key == "repository"]


async def test_the_agent_finds_the_repository_and_commits_as_its_author(
    working: ConversationHarness, server: GitServer
) -> None:
    url = server.create("private/project", {"AGENTS.md": "Be brief.", "a.txt": "a"})
    spec = agent(
        working,
        tool_call_answer(("terminal", {"command": COMMIT})),
        text_answer("Done."),
        repository=url,
        repository_token="REPO_TOKEN",
        git_user_name="Anna Example",
        git_user_email="anna@example.org",
    )
    talk = await working.client.start("Go.", spec)
    await talk.wait_for_turn()
    [output] = await observations(talk)
    assert "Author: Anna Example <anna@example.org>" in output
    [cloned] = await clones(talk)
    assert (cloned.value["url"], cloned.value["directory"]) == (url, "project")
    [recalled] = await events(talk, RecallEvent)
    assert f"Cloned: {url}\nInto: project/ of the workspace" in recalled.content
    assert "Be brief." in recalled.content
    entries = await talk.log.read(0, await talk.log.end())
    kinds = event_kinds(entries)
    assert kinds.index("MessageEvent") < kinds.index("RecallEvent") < kinds.index("ActionEvent")
    assert entries[cloned_seq(entries)].files is not None, "its files are kept"
    assert TOKEN.encode() not in b"".join(entry.body for entry in entries)
    assert (await talk.state()).repository == url


def cloned_seq(entries: list[Entry]) -> int:
    return next(entry.seq for entry in entries if getattr(entry.event, "key", None) == "repository")


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("public", {"branch": "gone"}, "branch_not_found"),
        pytest.param("nothing", {}, "repository_not_found", marks=pytest.mark.long),
        pytest.param("private/own", {}, "repository_private", marks=pytest.mark.long),
        pytest.param(
            *("private/own", {"repository_token": "WRONG"}, "token_unavailable"),
            marks=pytest.mark.long,
        ),
        pytest.param("huge", {}, "repository_too_large", marks=pytest.mark.long),
    ],
)
async def test_what_cannot_be_cloned_is_told_in_a_sentence_and_the_turn_can_go_on(
    working: ConversationHarness, server: GitServer, name: str, fields: dict[str, str], code: str
) -> None:
    for each in ("public", "private/own"):
        server.create(each, {"a.txt": "a"})
    server.create("huge", {"noise": "".join(map(str, range(400_000)))})
    spec = agent(working, text_answer("Hello."), repository=f"{server.url}/{name}.git", **fields)
    talk = await working.client.start("Go.", spec)
    state = await talk.wait_for_turn()
    [failed] = await events(talk, ConversationErrorEvent)
    assert (state.status, failed.code) == ("error", code)
    assert failed.detail.endswith(".")
    assert "\n" not in failed.detail
    assert await events(talk, RecallEvent) == []
    changes = {"repository": f"{server.url}/public.git", "branch": None, "repository_token": None}
    await talk.configure(changes)
    await talk.resume()
    await wait_until_finished(talk)
    [cloned] = await clones(talk)
    assert cloned.value["directory"] == "public"


async def wait_until_finished(talk: Conversation) -> None:
    while (await talk.status()).status != "finished":
        await asyncio.sleep(0.05)


@pytest.mark.long
async def test_a_server_that_is_away_for_a_while_is_tried_again(
    working: ConversationHarness, server: GitServer
) -> None:
    url = server.create("project", {"a.txt": "a"})
    server.failures = [503]
    talk = await working.client.start("Go.", agent(working, text_answer("Hello."), repository=url))
    state = await talk.wait_for_turn()
    assert state.status == "finished"
    assert len(await clones(talk)) == 1
    assert await events(talk, ConversationErrorEvent) == []


async def test_an_interrupt_stops_a_clone_and_a_message_begins_it_anew(
    working: ConversationHarness, server: GitServer
) -> None:
    url = server.create("project", {"a.txt": "a"})
    server.delay = 10
    talk = await working.client.start("Go.", agent(working, text_answer("Hello."), repository=url))
    while not server.requests:
        await asyncio.sleep(0.05)
    await talk.interrupt()
    while (await talk.status()).status != "idle":
        await asyncio.sleep(0.05)
    assert await clones(talk) == []
    server.delay = 0
    await talk.send("And now?", message_id="now")
    await talk.wait_for_turn("now")
    assert len(await clones(talk)) == 1


async def test_the_token_is_the_users_own_secret(
    home: ConversationHarness, server: GitServer
) -> None:
    url = server.create("private/project", {"a.txt": "a"})
    keyed = replace(home, resources=replace(home.resources, secret_keys=key_ring("one")))
    keyed.client.secret_keys = SecretStr(key_setting("one"))
    await keyed.client.put_secret("MY_TOKEN", TOKEN)
    async with keyed.worker():
        spec = agent(keyed, text_answer("Hello."), repository=url, repository_token="MY_TOKEN")
        talk = await keyed.client.start("Go.", spec)
        assert (await talk.wait_for_turn()).status == "finished"
    assert len(await clones(talk)) == 1


@pytest.mark.long
async def test_a_conversation_goes_on_with_its_clone_on_another_machine(
    home: ConversationHarness, server: GitServer, tmp_path: Path
) -> None:
    url = server.create("project", {"a.txt": "the first"})
    look = tool_call_answer(("terminal", {"command": "cat project/a.txt; git -C project status"}))
    spec = agent(home, text_answer("Hello."), look, text_answer("Done."), repository=url)
    async with home.worker():
        talk = await home.client.start("Go.", spec)
        await talk.wait_for_turn()
    asked = len(server.requests)
    disk = tmp_path / "another-machine"
    other = replace(
        home.resources, workspaces=disk, home=workspace_queue(disk, home.client.task_queue)
    )
    async with replace(home, resources=other).worker():
        await talk.send("And now?", message_id="now")
        await talk.wait_for_turn("now")
    [output] = await observations(talk)
    assert "the first" in output
    assert "working tree clean" in output
    assert len(server.requests) == asked, "it was not cloned again"


@pytest.mark.long
async def test_half_a_clone_of_a_worker_that_was_killed_is_begun_anew(
    harness: ConversationHarness, temporal_server: TemporalServer, server: GitServer
) -> None:
    url = server.create("project", {"a.txt": "a"})
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    server.delay = 3600
    spec = agent(harness, text_answer("Hello."), repository=url, heartbeat_timeout=1)
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("Go.", spec)
        while not server.requests:
            await asyncio.sleep(0.05)
        worker.kill()
    server.delay = 0
    own_folder = workspace(harness, talk)
    halves = [path.name for path in own_folder.iterdir()]
    assert [name.startswith(".perdure-clone-") for name in halves] == [True]
    with worker_process(environment, harness.folder / "two.log"):
        async with asyncio.timeout(60):
            assert (await talk.wait_for_turn()).status == "finished"
    assert [path.name for path in own_folder.iterdir()] == ["project"]
    assert len(await clones(talk)) == 1

"""What a start takes, over both clients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.client.protocol import ConversationHandle
from perdure.errors import Invalid
from tests.client.contract.clients import Clients
from tests.git_server import GitServer, serve_git
from tests.harness import event_kinds, text_answer, tool_call_answer

RECORDED: list[dict[str, Any]] = [
    {
        "kind": "MessageEvent",
        "source": "user",
        "llm_message": {"role": "user", "content": [{"type": "text", "text": "Make a file."}]},
    },
    {
        "kind": "ActionEvent",
        "source": "agent",
        "llm_response_id": "r1",
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "echo 1 > f"}'},
    },
    {
        "kind": "MessageEvent",
        "source": "agent",
        "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "It is made."}]},
    },
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    folder = tmp_path / "repositories"
    folder.mkdir()
    with serve_git(folder) as served:
        yield served


async def words_of(talk: ConversationHandle) -> str:
    return b"".join(entry.body for entry in await talk.log.read(0, await talk.log.end())).decode()


async def test_recorded_answers_come_before_those_of_the_model(clients: Clients) -> None:
    spec = clients.harness.spec(*map(text_answer, ("", "", "Live.")), tools=("terminal",))
    async with clients.harness.worker():
        talk = await clients.anna.start(None, spec, replay=RECORDED)
        assert (await talk.result()).text == "It is made."
        await talk.send("And now?", message_id="now")
        await talk.wait_for_turn("now")
        assert (await talk.result()).text == "Live."
    entries = await talk.log.read(0, await talk.log.end())
    assert event_kinds(entries).count("ObservationEvent") == 1, "the tool was called anew"
    assert "Make a file." in await words_of(talk), "the recorded message began it"
    state = await talk.state()
    assert [name for name in state.usage_by_model if "replay" in name] == ["chat replay"]


@pytest.mark.parametrize("events", [[], [{"kind": "PauseEvent"}], [{"a": 1}]])
async def test_what_is_no_recording_is_refused(
    clients: Clients, events: list[dict[str, Any]]
) -> None:
    with pytest.raises(Invalid, match="neither an answer nor a message of a user"):
        await clients.anna.start("Hi.", clients.harness.spec(), replay=events)


@pytest.mark.long
async def test_a_start_takes_a_repository_an_author_and_descriptions(
    clients: Clients, server: GitServer
) -> None:
    url = server.create("project", {"AGENTS.md": "Be brief."})
    server.commit("project", {"AGENTS.md": "Be kind."}, branch="feature")
    commit = "cd project && git commit -q --allow-empty -m x && git log -1 --format=%an"
    spec = clients.harness.spec(
        tool_call_answer(("terminal", {"command": commit})),
        text_answer("Done."),
        tools=("terminal",),
        instructions="Answer in verse.",
        repository=url,
        branch="feature",
        git_user_name="Anna Example",
        git_user_email="anna@example.org",
        secrets={"TICKETS": "reads tickets"},
        metadata={"run": "7"},
        app_name="shop",
        parent="01a21670-0000-7000-8000-000000000000",
    )
    async with clients.harness.worker():
        talk = await clients.anna.start("Go.", spec)
        assert (await talk.wait_for_turn()).status == "finished"
    words = await words_of(talk)
    for part in ("Be kind.", "Anna Example", "Answer in verse.", "* `TICKETS`: reads tickets"):
        assert part in words
    state = await talk.state()
    assert state.spec is not None
    assert (state.spec.app_name, state.spec.metadata) == ("shop", {"run": "7"})
    assert (await talk.status()).parent == "01a21670-0000-7000-8000-000000000000"

"""Tools of an MCP server: arguments, results, environment."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from perdure.events.content import ImageContent, join_text
from perdure.tools.mcp.servers import McpSessions, McpUnavailable, OutcomeUnknown
from perdure.tools.output import MAX_SHOWN_CHARACTERS
from perdure.tools.tool import ToolFailed
from tests.mcp_server import PICTURE
from tests.tools.conftest import ToolBench
from tests.tools.mcp_calling import Caller, environment_variable, stdio_server
from tests.tools.processes import wait_until


@pytest_asyncio.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SimpleNamespace]:
    """Sessions that the tests of this module share, and the folder of their server."""
    with environment_variable("TEST_KEY_OF_WORKER", "a secret") as name:
        values = {"PLAIN": "as it is", "MIXED": f"Bearer ${{{name}}}!"}
        server = stdio_server(trusted=True, call_timeout=30, env={"KEY": name}, env_values=values)
        sessions = McpSessions()
        folder = tmp_path_factory.mktemp("workspace")
        yield SimpleNamespace(sessions=sessions, server=server, folder=folder)
        await sessions.close()


@pytest.fixture
def caller(place: ToolBench, running: SimpleNamespace) -> Caller:
    context = place.context
    here = ToolBench(
        type(context)(**{**vars(context), "workspace": running.folder}), progress=place.progress
    )
    return Caller(running.sessions, here, running.server)


async def test_a_server_tells_what_it_offers(caller: Caller) -> None:
    tools = {definition.name: definition for definition in await caller.definitions()}
    add = tools["test__add"]
    assert add.description == "Add two whole numbers."
    assert add.parameters["properties"]["a"] == {"title": "A", "type": "integer"}
    assert add.parameters["required"] == ["a"]
    assert add.annotations.repeatable
    assert not add.annotations.openWorldHint
    assert not tools["test__note"].annotations.repeatable


async def test_a_call_gives_what_the_tool_answers_once(caller: Caller) -> None:
    assert await caller.call_for_text("add", a="2", b=3) == "5"
    assert await caller.call_for_text("note", text="é€😀") == "noted é€😀"


async def test_every_kind_of_content_is_shown_or_noted(caller: Caller) -> None:
    observation = await caller.call("everything")
    text, image = observation.content
    assert isinstance(image, ImageContent)
    assert image.image_urls == (f"data:image/png;base64,{PICTURE}",)
    lines = join_text([text]).splitlines()
    assert lines[0] == "a text"
    assert lines[1].startswith("[image of type image/png, 4 bytes, kept as blobs/")
    assert lines[2].startswith("[audio of type audio/wav, 5 bytes, kept as blobs/")
    assert lines[3] == "[resource book, at file:///book: worth reading]"
    assert lines[4:6] == ["[resource file:///page]", "a page"]
    assert lines[6].endswith("cannot be read: it is not base64]")
    assert json.loads(lines[7]) == {"more": [1, 2]}
    assert await caller.place.stored(lines[2].removesuffix("]").split()[-1]) == b"sound"


async def test_a_tool_that_fails_says_so(caller: Caller) -> None:
    observation = await caller.call("fail")
    assert observation.is_error
    assert "fail" in join_text(observation.content)


async def test_a_long_answer_is_cut_and_kept_whole(caller: Caller) -> None:
    answer = await caller.call_for_text("long", characters=MAX_SHOWN_CHARACTERS * 2)
    assert len(answer) < MAX_SHOWN_CHARACTERS + 300
    key = next(word for word in answer.split() if word.startswith("blobs/"))
    assert await caller.place.stored(key) == b"x" * MAX_SHOWN_CHARACTERS * 2


async def test_progress_is_reported_to_watchers(caller: Caller) -> None:
    assert await caller.call_for_text("wait", seconds=0) == "waited"
    assert caller.place.progress == ["waiting (1/4)"]


async def test_a_server_sees_its_own_variables_and_not_the_workers(caller: Caller) -> None:
    with environment_variable("SECRET_OF_WORKER", "value"):
        seen = json.loads(await caller.call_for_text("surroundings"))
    assert seen["environment"]["KEY"] == "a secret"
    assert seen["environment"]["PLAIN"] == "as it is"
    assert seen["environment"]["MIXED"] == "Bearer a secret!"
    assert seen["environment"]["PATH"] == os.environ["PATH"]
    assert not {"SECRET_OF_WORKER", "TEST_KEY_OF_WORKER"} & set(seen["environment"])
    assert Path(seen["cwd"]) == caller.place.workspace.resolve()


async def test_an_interrupted_call_is_cancelled_at_the_server(caller: Caller) -> None:
    before = json.loads(await caller.call_for_text("surroundings"))["pid"]
    call = asyncio.create_task(caller.call("wait", seconds=600))
    await wait_until(lambda: caller.place.progress)
    call.cancel()
    done, _ = await asyncio.wait({call}, timeout=1)
    assert done
    assert call.cancelled()
    await wait_until(lambda: "cancelled" in caller.calls)
    assert json.loads(await caller.call_for_text("surroundings"))["pid"] == before


async def test_calls_of_one_conversation_run_side_by_side(caller: Caller) -> None:
    slow = asyncio.create_task(caller.call("wait", seconds=600))
    await wait_until(lambda: caller.place.progress)
    assert await caller.call_for_text("add", a=1) == "2"
    slow.cancel()
    await asyncio.wait({slow})


async def test_bad_arguments_are_refused_before_the_server_is_asked(caller: Caller) -> None:
    with pytest.raises(ValueError, match=r"`a`: 'many' is not of type 'integer'\."):
        await caller.call("add", a="many")


async def test_a_tool_of_an_unknown_server_is_reported_in_a_sentence(caller: Caller) -> None:
    note = next(
        definition for definition in await caller.definitions() if definition.name == "test__note"
    )
    gone = note.model_copy(update={"name": "test__gone"})
    with pytest.raises(ToolFailed, match=r"does not offer test__gone any more\. It has test__note"):
        await caller.call_recorded(gone, text="x")
    others = note.model_copy(update={"name": "other__note"})
    with pytest.raises(ToolFailed, match="its MCP server does not belong to this conversation"):
        await caller.call_recorded(others, text="x")


@pytest.mark.long
async def test_a_call_that_takes_too_long_is_given_up_and_may_have_happened(
    place: ToolBench,
) -> None:
    sessions = McpSessions()
    caller = Caller(sessions, place, stdio_server(call_timeout=0.3, start_timeout=30))
    assert await caller.definitions()
    with pytest.raises(OutcomeUnknown, match=r"no answer within 0\.3 s.*check before repeating"):
        await caller.call("wait", seconds=600)
    await wait_until(lambda: caller.calls == ["cancelled"])
    await sessions.close()


@pytest.mark.long
async def test_tools_that_come_and_go_are_noticed(place: ToolBench) -> None:
    sessions = McpSessions()
    caller = Caller(sessions, place, stdio_server())
    servers = (caller.server,)
    known = await caller.definitions()
    fail = next(item for item in known if item.name == "test__fail")
    assert await sessions.find_changes("one", servers, place.workspace, known) is None
    await caller.call("change")
    async with asyncio.timeout(10):
        while (now := await sessions.find_changes("one", servers, place.workspace, known)) is None:
            await asyncio.sleep(0.02)
    assert {item.name for item in now} ^ {item.name for item in known} == {
        "test__fail",
        "test__newcomer",
    }
    assert await sessions.find_changes("one", servers, place.workspace, now) is None
    assert await caller.call_for_text("newcomer", a=1) == "2"
    with pytest.raises(ToolFailed, match="does not offer test__fail any more"):
        await caller.call_recorded(fail)
    await sessions.close()
    assert await sessions.find_changes("one", servers, place.workspace, known) is None


@pytest.mark.parametrize(
    ("servers", "sentence"),
    [
        ((stdio_server(url="http://x"),), "'test' needs either a `command` to start or a `url`"),
        (
            (stdio_server(name="a"), stdio_server(name="a")),
            "'a' and 'a' would have tools of the same name",
        ),
        (
            (stdio_server(name="a__b"), stdio_server(name="a")),
            "'a__b' and 'a' would have tools of the",
        ),
    ],
)
async def test_invalid_servers_are_refused(
    place: ToolBench, servers: tuple[object, ...], sentence: str
) -> None:
    with pytest.raises(McpUnavailable, match=sentence):
        await McpSessions().list_tools("one", servers, place.workspace)  # type: ignore[arg-type]

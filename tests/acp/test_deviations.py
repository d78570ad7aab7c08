"""Faults planted into what was really said: the judge of all other tests notices each."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from perdure.agent.policies import Confirmation
from tests.acp.judge import Judge
from tests.acp.stage import open_editor
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

Said: TypeAlias = list[tuple[str, Any]]
"""Messages by who has said them; bytes are what is no message."""


@pytest_asyncio.fixture
async def said(world: ConversationHarness) -> Said:
    """What editor and agent say in a session with a call, a permission, a cancel and a replay."""
    call = tool_call_answer(("add", {"a": 2, "b": 3}), content="I add.")
    agent = world.spec(call, text_answer("It is 5."), call, text_answer("Never."))
    asks = agent.model_copy(update={"confirmation": Confirmation(policy="always")})
    async with open_editor(world.client, asks, ["allow_once", None]) as run:
        name = await run.open()
        await run.prompt(name, "2 + 3?")
        assert (await run.prompt(name, "Once more.")).stop_reason == "cancelled"
        await run.agent.load_session(cwd="/work", session_id=name)
    return [(who, json.loads(line)) for who, line in run.judged.lines]


def find(said: Said, kind: str, nth: int = 0) -> int:
    """Return the place of an update of a kind, or of the answer to a method."""
    methods = {m["id"]: m["method"] for who, m in said if who == "editor" and "method" in m}
    places = [
        place
        for place, (who, message) in enumerate(said)
        if who == "agent"
        and kind
        in (
            message.get("params", {}).get("update", {}).get("sessionUpdate"),
            message.get("method"),
            methods.get(message.get("id")) if "method" not in message else None,
        )
    ]
    return places[nth]


def move(said: Said, place: int, to: int) -> None:
    said.insert(to, said.pop(place))


def change(said: Said, place: int, edit: Callable[[Any], Any]) -> None:
    edit(said[place][1])


def insert_text(said: Said) -> None:
    said.insert(find(said, "tool_call"), ("agent", b"Loading ...\n"))


def answer_before_the_replay_ends(said: Said) -> None:
    move(said, find(said, "session/load"), find(said, "user_message_chunk"))


def answer_before_the_last_words(said: Said) -> None:
    move(said, find(said, "session/prompt"), find(said, "agent_message_chunk", 1))


def update_before_the_call(said: Said) -> None:
    move(said, find(said, "tool_call_update"), find(said, "tool_call"))


def tell_of_a_call_twice(said: Said) -> None:
    said.insert(find(said, "tool_call") + 1, said[find(said, "tool_call")])


def leave_a_call_open(said: Said) -> None:
    del said[find(said, "tool_call_update", 1)]


def go_on_after_the_end_of_a_call(said: Said) -> None:
    said.insert(find(said, "agent_message_chunk", 1), said[find(said, "tool_call_update")])


def write_null(said: Said) -> None:
    change(said, find(said, "session/new"), lambda m: m["result"].update(configOptions=None))


def fail_when_cancelled(said: Said) -> None:
    place = find(said, "session/prompt", 1)
    said.insert(place, ("editor", {"method": "session/cancel", "params": session_of(said)}))
    error = {"code": -32603, "message": "It was cancelled."}
    said[place + 1] = ("agent", {"jsonrpc": "2.0", "id": said[place + 1][1]["id"], "error": error})


def end_a_cancelled_turn_as_refused(said: Said) -> None:
    place = find(said, "session/prompt", 1)
    said.insert(place, ("editor", {"method": "session/cancel", "params": session_of(said)}))
    change(said, place + 1, lambda m: m["result"].update(stopReason="refusal"))


def session_of(said: Said) -> dict[str, str]:
    return {"sessionId": said[find(said, "session/new")][1]["result"]["sessionId"]}


def answer_twice(said: Said) -> None:
    said.append(said[find(said, "session/prompt")])


def answer_nothing(said: Said) -> None:
    del said[find(said, "session/new")]


def stop_for_a_reason_that_there_is_not(said: Said) -> None:
    change(said, find(said, "session/prompt"), lambda m: m["result"].update(stopReason="done"))


def invent_a_code(said: Said) -> None:
    place = find(said, "session/new")
    said[place][1].pop("result")
    said[place][1]["error"] = {"code": -31999, "message": "No."}


def invent_an_update(said: Said) -> None:
    place = find(said, "agent_message_chunk")
    change(said, place, lambda m: m["params"]["update"].update(sessionUpdate="words"))


def echo_the_user(said: Said) -> None:
    echo = said[find(said, "user_message_chunk")]
    said.insert(find(said, "agent_message_chunk"), echo)


def ask_before_telling(said: Said) -> None:
    place, calls = find(said, "session/request_permission"), find(said, "tool_call")
    move(said, place, calls)


def break_the_line(said: Said) -> None:
    place = find(said, "agent_message_chunk")
    said[place] = ("agent", json.dumps(said[place][1]).encode())


DEVIATIONS = [
    insert_text,
    answer_before_the_replay_ends,
    answer_before_the_last_words,
    update_before_the_call,
    tell_of_a_call_twice,
    leave_a_call_open,
    go_on_after_the_end_of_a_call,
    write_null,
    fail_when_cancelled,
    end_a_cancelled_turn_as_refused,
    answer_twice,
    answer_nothing,
    stop_for_a_reason_that_there_is_not,
    invent_a_code,
    invent_an_update,
    echo_the_user,
    ask_before_telling,
    break_the_line,
]


def judge(said: Said) -> list[str]:
    judge = Judge()
    for who, message in said:
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        (judge.hear if who == "editor" else judge.judge)(line)
    judge.end()
    return judge.deviations


async def test_each_deviation_is_noticed(said: Said) -> None:
    assert judge(said) == []
    for deviate in DEVIATIONS:
        faulty: Said = [(who, json.loads(json.dumps(message))) for who, message in said]
        deviate(faulty)
        assert judge(faulty), deviate.__name__

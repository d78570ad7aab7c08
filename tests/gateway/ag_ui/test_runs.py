"""Runs over HTTP: what is said is said once, and whoever comes back is told the rest."""

import asyncio
import base64
import uuid
from typing import Any

import pytest

from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.stage import WORDS, AgUiStage, Event, ask, find, kinds, said, user

pytestmark = pytest.mark.long

PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
).decode()


def again(body: dict[str, Any], *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body of another run of the same thread."""
    return {**body, "runId": str(uuid.uuid4()), "messages": list(messages), **more}


def spoken(events: list[Event]) -> list[dict[str, Any]]:
    """Return a message of the agent's, as a client brings it."""
    started = find(events, "TEXT_MESSAGE_START")
    return [{"id": it["messageId"], "role": "assistant", "content": "…"} for it in started]


async def test_a_run_has_words_reasoning_a_call_and_its_result(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("2 + 3?"), state={"tab": "sums"})
    events = await ag_ui_stage.run("adder", body)
    judge(events)
    assert [kind for kind in kinds(events) if not kind.startswith(("TEXT", "STEP", "REASON"))] == [
        *("RUN_STARTED", "STATE_SNAPSHOT", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("TOOL_CALL_RESULT", "STATE_DELTA", "RUN_FINISHED"),
    ]
    assert said(events) == "I add.It is 5."
    assert find(events, "REASONING_MESSAGE_CONTENT")[0]["delta"] == "Two numbers."
    assert find(events, "TOOL_CALL_RESULT")[0]["content"] == "5"
    snapshot = find(events, "STATE_SNAPSHOT")[0]["snapshot"]
    assert (snapshot["conversationId"], snapshot["tab"]) == (body["threadId"], "sums")
    assert events[-1]["usage"][0]["cachedInputTokens"] == 2
    shown = await ag_ui_stage.gateway.wait_until(body["threadId"], "finished")
    assert shown["status"]["agent"] == "adder"


async def test_a_thread_goes_on_with_its_history_or_is_told_it(ag_ui_stage: AgUiStage) -> None:
    first = user("2 + 3?")
    body = ask(first)
    before = await ag_ui_stage.run("adder", body)
    second = user("And then?")
    after = await ag_ui_stage.run("adder", again(body, first, *spoken(before), second))
    judge(after)
    assert find(after, "MESSAGES_SNAPSHOT") == []
    assert said(after) == "Answer 2."
    third = user("Who am I?")
    told = await ag_ui_stage.run("adder", again(body, third))
    judge(told)
    [snapshot] = find(told, "MESSAGES_SNAPSHOT")
    roles = [message["role"] for message in snapshot["messages"]]
    assert roles == [
        *("user", "assistant", "tool", "reasoning", "assistant", "user", "assistant", "user"),
    ]
    assert snapshot["messages"][-1] == third
    called = snapshot["messages"][1]
    assert (called["content"], called["toolCalls"][0]["function"]["name"]) == ("I add.", "add")
    assert said(told) == "Answer 3."


async def test_who_is_behind_another_client_is_told_what_was_said_there(
    ag_ui_stage: AgUiStage,
) -> None:
    first = user("2 + 3?")
    body = ask(first)
    before = await ag_ui_stage.run("adder", body)
    path = f"/v1/conversations/{body['threadId']}/messages"
    await ag_ui_stage.gateway.anna.post(path, json={"text": "From the page."})
    await ag_ui_stage.gateway.wait_until(body["threadId"], "finished")
    events = await ag_ui_stage.run("adder", again(body, first, *spoken(before), user("Still?")))
    texts = [it.get("content") for it in find(events, "MESSAGES_SNAPSHOT")[0]["messages"]]
    assert "From the page." in texts


async def test_the_same_request_again_joins_the_turn_and_says_nothing_twice(
    ag_ui_stage: AgUiStage,
) -> None:
    body = ask(user("Will you be asked twice?"))
    async with ag_ui_stage.stream("speaker", body) as events:
        async for event in events:
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                break  # the client is lost, and the turn goes on
    joined = await ag_ui_stage.run("speaker", body)
    judge(joined)
    assert kinds(joined)[:3] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
    assert joined[1]["messages"] == body["messages"]
    assert said(joined) == WORDS
    later = await ag_ui_stage.run("speaker", again(body))
    assert [said(later), kinds(later)[1]] == [WORDS, "MESSAGES_SNAPSHOT"]
    assert await ag_ui_stage.count_messages(body["threadId"]) == 1


async def test_a_run_under_way_is_joined_or_refuses_another_message(
    ag_ui_stage: AgUiStage,
) -> None:
    body = ask(user("Sleep."))
    async with ag_ui_stage.stream("sleeper", body) as events:
        assert (await anext(events))["type"] == "RUN_STARTED"
        another = again(body, user("Wake up."))
        refused = await ag_ui_stage.gateway.anna.post("/ag-ui/sleeper", json=another)
        assert (refused.status_code, refused.json()["code"]) == (409, "conversation_locked")
        joining = asyncio.create_task(ag_ui_stage.run("sleeper", again(body)))
        await ag_ui_stage.gateway.anna.post(f"/v1/conversations/{body['threadId']}/interrupt")
        rest = [event async for event in events]
    assert rest[-1]["outcome"] == {"type": "cancelled"}
    joined = await joining
    judge(joined)
    assert joined[-1]["outcome"] == {"type": "cancelled"}


async def test_interrupts_are_answered_by_name_and_the_run_goes_on(
    ag_ui_stage: AgUiStage,
) -> None:
    body = ask(user("2 + 3?"))
    waiting = await ag_ui_stage.run("asker", body)
    judge(waiting)
    ids = [each["id"] for each in waiting[-1]["outcome"]["interrupts"]]
    assert len(ids) == 2
    reloaded = await ag_ui_stage.run("asker", again(body))
    assert reloaded[-1]["outcome"] == waiting[-1]["outcome"]
    one = [{"interruptId": ids[0], "status": "cancelled"}]
    refused = await ag_ui_stage.gateway.anna.post("/ag-ui/asker", json=again(body, resume=one))
    assert refused.status_code == 422
    assert ids[1] in refused.json()["detail"]
    resume = [
        {"interruptId": ids[0], "status": "resolved", "payload": {"approved": True}},
        {
            "interruptId": ids[1],
            "status": "resolved",
            "payload": {"approved": False, "reason": "Too easy."},
        },
    ]
    answered = again(body, *body["messages"], resume=resume)
    events = await ag_ui_stage.run("asker", answered)
    judge(events)
    results = {it["toolCallId"]: it["content"] for it in find(events, "TOOL_CALL_RESULT")}
    assert results[ids[0]] == "5"
    assert "Too easy." in results[ids[1]]
    assert find(events, "TOOL_CALL_START") == []
    assert said(events) == "Done."
    repeated = await ag_ui_stage.run("asker", answered)
    assert said(repeated) == "Done."
    unknown = again(body, resume=[{"interruptId": "none", "status": "cancelled"}])
    refused = await ag_ui_stage.gateway.anna.post("/ag-ui/asker", json=unknown)
    assert (refused.status_code, "none" in refused.json()["detail"]) == (422, True)


async def test_what_was_cancelled_is_refused_and_the_agent_goes_on(
    ag_ui_stage: AgUiStage,
) -> None:
    body = ask(user("2 + 3?"))
    waiting = await ag_ui_stage.run("asker", body)
    ids = [each["id"] for each in waiting[-1]["outcome"]["interrupts"]]
    resume = [{"interruptId": name, "status": "cancelled"} for name in ids]
    events = await ag_ui_stage.run("asker", again(body, resume=resume))
    judge(events)
    assert len(find(events, "TOOL_CALL_RESULT")) == 2
    assert said(events) == "Done."


async def test_a_message_in_place_of_answers_refuses_what_waits(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("2 + 3?"))
    waiting = await ag_ui_stage.run("asker", body)
    ids = [each["id"] for each in waiting[-1]["outcome"]["interrupts"]]
    resume = [{"interruptId": name, "status": "cancelled"} for name in ids]
    events = await ag_ui_stage.run("asker", again(body, user("No, sing."), resume=resume))
    judge(events)
    told = find(events, "MESSAGES_SNAPSHOT")[0]["messages"]
    assert [it["toolCallId"] for it in told if it["role"] == "tool"] == ids
    assert told[-1]["content"] == "No, sing."
    assert said(events) == "Done."
    assert await ag_ui_stage.count_messages(body["threadId"]) == 2


async def test_a_task_for_another_agent_is_a_sub_agent(ag_ui_stage: AgUiStage) -> None:
    events = await ag_ui_stage.run("boss", ask(user("Have it counted.")))
    judge(events)
    [started], [ended] = find(events, "SUBAGENT_STARTED"), find(events, "SUBAGENT_FINISHED")
    [called] = find(events, "TOOL_CALL_START")
    assert (started["description"], started["parentToolCallId"]) == (
        *("Count.", called["toolCallId"]),
    )
    assert ended["subagentRunId"] == started["subagentRunId"]
    assert "I count 3." in ended["result"]


async def test_a_failed_turn_is_an_error_and_so_it_is_for_who_comes_back(
    ag_ui_stage: AgUiStage,
) -> None:
    body = ask(user("Break."))
    for events in (await ag_ui_stage.run("broken", body), await ag_ui_stage.run("broken", body)):
        judge(events)
        assert events[-1]["type"] == "RUN_ERROR"
        assert events[-1]["code"]


async def test_a_thread_without_a_word_is_empty(ag_ui_stage: AgUiStage) -> None:
    events = await ag_ui_stage.run("adder", ask())
    judge(events)
    assert find(events, "MESSAGES_SNAPSHOT")[0]["messages"] == []
    assert events[-1]["outcome"] == {"type": "success"}


async def test_a_message_that_was_only_recorded_is_no_run(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("2 + 3?"))
    await ag_ui_stage.run("adder", body)
    path = f"/v1/conversations/{body['threadId']}/messages"
    await ag_ui_stage.gateway.anna.post(path, json={"text": "Note it.", "run": False})
    events = await ag_ui_stage.run("adder", again(body))
    judge(events)
    assert find(events, "MESSAGES_SNAPSHOT")[0]["messages"][-1]["content"] == "Note it."
    assert events[-1]["type"] == "RUN_FINISHED"


async def test_context_and_pictures_reach_the_agent_and_context_is_not_shown(
    ag_ui_stage: AgUiStage,
) -> None:
    source = {"type": "data", "value": PIXEL, "mimeType": "image/png"}
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
    context = [{"description": "The open page", "value": "/sums"}]
    system = {"id": "s", "role": "system", "content": "Be brief."}
    body = ask(system, user(parts), context=context)
    await ag_ui_stage.run("adder", body)
    thread = f"/v1/conversations/{body['threadId']}"
    events = (await ag_ui_stage.gateway.anna.get(f"{thread}/events")).json()["items"]
    told = str(events)
    assert "The open page: /sums" in told
    assert "Be brief." in told
    snapshot = find(await ag_ui_stage.run("adder", again(body)), "MESSAGES_SNAPSHOT")[0]
    text, image = snapshot["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    shown = await ag_ui_stage.gateway.anna.get(image["source"]["value"])
    assert shown.content == base64.b64decode(PIXEL)


async def test_a_thread_of_any_name_is_a_conversation_of_the_users(
    ag_ui_stage: AgUiStage,
) -> None:
    bodies = [ask(user("2 + 3?", "m1"), threadId="chat 7 / ö") for _ in range(2)]
    first, same = [await ag_ui_stage.run("adder", body) for body in bodies]
    bens = await ag_ui_stage.run("adder", bodies[0], ag_ui_stage.gateway.ben)
    names = [
        find(events, "STATE_SNAPSHOT")[0]["snapshot"]["conversationId"]
        for events in (first, same, bens)
    ]
    assert names[0] == names[1] != names[2]
    assert find(bens, "MESSAGES_SNAPSHOT") == []


async def test_another_users_thread_is_not_reached(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("A secret of Anna's."))
    await ag_ui_stage.run("adder", body)
    events = await ag_ui_stage.run("adder", again(body), ag_ui_stage.gateway.ben)
    assert "secret" not in str(events)
    assert find(events, "MESSAGES_SNAPSHOT")[0]["messages"] == []
    bens = await ag_ui_stage.run("adder", again(body, user("Hi.")), ag_ui_stage.gateway.ben)
    assert "secret" not in str(bens)
    assert await ag_ui_stage.count_messages(body["threadId"]) == 1

"""Responses, as OpenAI's own client has them."""

import asyncio
import uuid
from functools import partial
from typing import Any

import pytest
from openai import BadRequestError, ConflictError, NotFoundError, Timeout
from openai.types.responses import Response

from tests.gateway.openai.stage import WORDS, OpenAiStage, make_client

pytestmark = pytest.mark.long


def dump(response: Response) -> dict[str, Any]:
    """Return a response as it came, without what its client parses."""
    fields = response.model_dump(exclude_unset=True, warnings=False)
    for item in fields["output"]:
        for part in item.get("content") or ():
            part.pop("parsed", None)
    return fields


@pytest.mark.parametrize("model", ["adder", "speaker", "asker"])
async def test_a_response_is_the_same_streamed_read_and_replayed(
    openai_stage: OpenAiStage, model: str
) -> None:
    responses = openai_stage.anna.responses
    async with responses.stream(model=model, input="2 + 3?") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert dump(await responses.retrieve(final.id)) == dump(final)
    openai_stage.gateway.gateway.turns._turns.clear()  # as another gateway reads it
    async with responses.stream(response_id=final.id) as again:
        replayed = [event async for event in again]
    assert [event.type for event in replayed] == [event.type for event in events]
    rest = await responses.retrieve(final.id, stream=True, starting_after=4)
    numbers = [event.sequence_number async for event in rest]
    assert numbers == list(range(5, len(events)))


async def ask(stage: OpenAiStage, model: str = "adder", **fields: Any) -> Response:
    response: Response = await stage.anna.responses.create(model=model, input="2 + 3?", **fields)
    return response


def kinds(response: Response) -> list[str]:
    return [item.type for item in response.output]


async def test_tools_are_shown_as_function_calls_where_a_client_asks_for_them(
    openai_stage: OpenAiStage,
) -> None:
    response = await ask(openai_stage, extra_headers={"X-Perdure-Tool-Items": "function_call"})
    assert kinds(response) == [
        *("message", "reasoning", "function_call", "function_call_output", "message")
    ]
    assert response.output[2].call_id == response.output[3].call_id  # type: ignore[union-attr]


async def test_a_named_chat_goes_on_and_its_tasks_are_answered_beside_it(
    openai_stage: OpenAiStage,
) -> None:
    named = {"X-Conversation-Id": "a chat of responses"}
    first = await ask(openai_stage, extra_headers=named)
    said: Any = [*first.output, {"role": "user", "content": "And then?"}]
    history: Any = [{"role": "user", "content": "2 + 3?"}, *said]
    create = openai_stage.anna.responses.create
    second = await create(model="adder", input=history, extra_headers=named)
    task = {**named, "X-Perdure-Task": "title_generation"}
    title = await create(model="adder", input="### Task: a title", extra_headers=task)
    async with openai_stage.anna.responses.stream(
        model="adder", input="### Task: tags", extra_headers=task
    ) as stream:
        tags = await stream.get_final_response()
    assert first.conversation is not None
    assert second.conversation == first.conversation
    assert second.output_text == "Answer 2."
    assert (title.status, title.conversation) == ("completed", None)
    assert title.output_text == tags.output_text != ""
    items = await openai_stage.anna.conversations.items.list(first.conversation.id)
    texts = [part.text for item in items.data for part in getattr(item, "content", None) or ()]
    assert not [text for text in texts if "Task" in text]


async def test_a_task_beside_no_chat_is_hidden_and_one_in_a_conversation_is_said_there(
    openai_stage: OpenAiStage,
) -> None:
    task = {"X-Perdure-Task": "title_generation"}
    alone = await ask(openai_stage, extra_headers=task)
    assert alone.conversation is not None
    listed = (await openai_stage.gateway.anna.get("/v1/conversations")).json()["items"]
    name = str(uuid.UUID(alone.conversation.id.removeprefix("conv_")))
    assert name not in [item["id"] for item in listed]
    await openai_stage.gateway.wait_until(name, "closed")
    first = await ask(openai_stage)
    second = await ask(openai_stage, previous_response_id=first.id, extra_headers=task)
    third = await ask(openai_stage, previous_response_id=second.id)
    assert third.conversation == second.conversation == first.conversation


async def test_a_chain_goes_on_from_its_newest_response_and_forks_from_an_older_one(
    openai_stage: OpenAiStage,
) -> None:
    responses = openai_stage.anna.responses
    first = await ask(openai_stage, metadata={"order": "7"})
    second = await ask(openai_stage, previous_response_id=first.id)
    other = await ask(openai_stage, previous_response_id=first.id)
    third = await ask(openai_stage, previous_response_id=other.id)
    assert [it.output_text for it in (second, other, third)] == [
        *("Answer 2.", "Answer 2.", "Answer 3.")
    ]
    places = [it.conversation.id for it in (first, second, other, third) if it.conversation]
    assert places == [places[0], places[0], places[2], places[2]]
    assert places[0] != places[2]
    assert dump(await responses.retrieve(first.id)) == dump(first)
    assert third.metadata == {"order": "7"}


async def test_approvals_are_given_and_refused(openai_stage: OpenAiStage) -> None:
    responses = openai_stage.anna.responses
    first = await ask(openai_stage, "asker")
    assert (kinds(first), first.status) == (["mcp_approval_request"] * 2, "completed")
    ids = [item.id for item in first.output]
    incomplete = [approve(ids[0])]
    with pytest.raises(BadRequestError) as caught:
        await responses.create(model="asker", input=incomplete, previous_response_id=first.id)
    assert caught.value.code == "approvals_incomplete"
    answers = [approve(ids[0]), {**approve(ids[1], False), "reason": "Too easy."}]
    second = await responses.create(model="asker", input=answers, previous_response_id=first.id)
    refused, done, answer = (item.model_dump(warnings=False) for item in second.output)
    assert (refused["status"], refused["approval_request_id"]) == ("failed", ids[1])
    assert "Too easy." in str(refused["error"])
    assert (done["output"], done["approval_request_id"]) == ("5", ids[0])
    assert answer["content"][0]["text"] == "Done."
    assert dump(await responses.retrieve(second.id)) == dump(second)
    items = [item.model_dump() async for item in await responses.input_items.list(second.id)]
    assert [item["type"] for item in items] == ["mcp_approval_response"] * 2


def approve(name: Any, accept: bool = True) -> Any:
    return {"type": "mcp_approval_response", "approval_request_id": name, "approve": accept}


async def test_a_conversation_is_made_used_listed_and_deleted(openai_stage: OpenAiStage) -> None:
    conversations = openai_stage.anna.conversations
    made = await conversations.create(metadata={"order": "7"})
    assert await conversations.retrieve(made.id) == made
    first = await ask(openai_stage, conversation=made.id)
    await ask(openai_stage, conversation=made.id)
    items = [item async for item in await conversations.items.list(made.id, order="asc", limit=2)]
    assert [item.type for item in items] == [
        *("message", "message", "reasoning", "mcp_call", "message", "message", "message")
    ]
    assert [item.id for item in items[1:5]] == [item.id for item in first.output]
    newest = await conversations.items.list(made.id, limit=1)
    assert newest.data[0].id == items[-1].id
    called = items[3].id or ""
    assert (await conversations.items.retrieve(called, conversation_id=made.id)).id == called
    changed = await conversations.update(made.id, metadata={"order": "8"})
    assert changed.metadata == {"order": "8"}
    assert (await conversations.delete(made.id)).deleted
    with pytest.raises(NotFoundError):
        await conversations.retrieve(made.id)
    with pytest.raises(NotFoundError):
        await openai_stage.anna.responses.retrieve(first.id)


async def test_a_conversation_at_work_is_locked_until_its_response_is_cancelled(
    openai_stage: OpenAiStage,
) -> None:
    responses = openai_stage.anna.responses
    made = await openai_stage.anna.conversations.create()
    begun = await ask(openai_stage, "sleeper", conversation=made.id, background=True)
    assert begun.status == "in_progress"
    with pytest.raises(ConflictError) as caught:
        await ask(openai_stage, "sleeper", conversation=made.id)
    assert caught.value.code == "conversation_locked"
    assert (await responses.cancel(begun.id)).status == "cancelled"
    assert (await responses.retrieve(begun.id)).status == "cancelled"
    assert (await responses.cancel(begun.id)).status == "cancelled"
    again = await ask(openai_stage, "sleeper", conversation=made.id, background=True)
    assert (await responses.cancel(again.id)).status == "cancelled"


async def test_a_response_in_the_background_is_polled_and_streamed(
    openai_stage: OpenAiStage,
) -> None:
    responses = openai_stage.anna.responses
    begun = await ask(openai_stage, "speaker", background=True)
    stream = await responses.retrieve(begun.id, stream=True, starting_after=1)
    events = [event async for event in stream]
    assert events[0].sequence_number == 2
    assert events[-1].type == "response.completed"
    assert (await responses.retrieve(begun.id)).output_text == WORDS


async def test_what_is_not_stored_is_hidden_and_closed(openai_stage: OpenAiStage) -> None:
    response = await ask(openai_stage, store=False)
    assert response.conversation is not None
    name = response.conversation.id.removeprefix("conv_")
    name = "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:]))
    await openai_stage.gateway.wait_until(name, "closed")
    listed = (await openai_stage.gateway.anna.get("/v1/conversations")).json()["items"]
    assert name not in [item["id"] for item in listed]


async def test_another_user_finds_nothing(openai_stage: OpenAiStage) -> None:
    ben, response = openai_stage.ben, await ask(openai_stage)
    assert response.conversation is not None
    name = response.conversation.id
    lost = (
        partial(ben.responses.retrieve, response.id),
        partial(ben.responses.cancel, response.id),
        partial(ben.responses.delete, response.id),
        partial(ben.responses.input_items.list, response.id),
        partial(ben.conversations.retrieve, name),
        partial(ben.conversations.update, name, metadata={"a": "b"}),
        partial(ben.conversations.delete, name),
        partial(ben.conversations.items.list, name),
        partial(ben.conversations.items.retrieve, "msg_1", conversation_id=name),
        partial(ben.responses.create, model="adder", input="Hi.", conversation=name),
    )
    for request in lost:
        with pytest.raises(NotFoundError):
            await request()
    with pytest.raises(BadRequestError) as caught:
        await ben.responses.create(model="adder", input="Hi.", previous_response_id=response.id)
    assert caught.value.code == "previous_response_not_found"
    assert (await openai_stage.anna.responses.retrieve(response.id)).status == "completed"


async def test_the_only_response_of_a_conversation_is_deleted_with_it(
    openai_stage: OpenAiStage,
) -> None:
    responses = openai_stage.anna.responses
    first = await ask(openai_stage)
    second = await ask(openai_stage, previous_response_id=first.id)
    with pytest.raises(BadRequestError):
        await responses.delete(second.id)
    alone = await ask(openai_stage)
    await responses.delete(alone.id)
    with pytest.raises(NotFoundError):
        await responses.retrieve(alone.id)


async def test_the_clients_own_retry_joins_the_turn_that_runs(openai_stage: OpenAiStage) -> None:
    stage = openai_stage.gateway
    hurried = await make_client(stage, "carl", timeout=Timeout(10, read=0.7), max_retries=4)
    raw = await hurried.responses.with_raw_response.create(model="speaker", input="2 + 3?")
    await hurried.close()
    assert int(raw.http_request.headers["x-stainless-retry-count"]) > 0
    response = raw.parse()
    assert response.output_text == WORDS
    assert response.conversation is not None
    [name] = await stage.gateway.client_for("carl").list_conversations()
    assert response.conversation.id == f"conv_{name.replace('-', '')}"


async def test_the_same_request_of_a_person_is_another_turn(openai_stage: OpenAiStage) -> None:
    first, second = await asyncio.gather(ask(openai_stage), ask(openai_stage))
    assert first.id != second.id


async def test_a_key_makes_a_request_once(openai_stage: OpenAiStage) -> None:
    keys = {"Idempotency-Key": "order-7"}
    first = await ask(openai_stage, extra_headers=keys)
    assert (await ask(openai_stage, extra_headers=keys)).id == first.id
    again = {**keys, "Idempotency-Key": "order-8"}
    assert (await ask(openai_stage, extra_headers=again)).id != first.id


async def test_a_turn_whose_client_was_lost_goes_on_and_is_joined_by_another(
    openai_stage: OpenAiStage,
) -> None:
    fields: Any = {"model": "speaker", "input": "A question that is asked twice."}
    stream = await openai_stage.anna.responses.create(**fields, stream=True)
    created = await anext(aiter(stream))
    await stream.close()
    assert created.type == "response.created"
    retry = {"x-stainless-retry-count": "1"}
    again = await openai_stage.anna.responses.create(**fields, extra_headers=retry, stream=True)
    events = [event async for event in again]
    assert events[0] == created
    assert events[-1].type == "response.completed"

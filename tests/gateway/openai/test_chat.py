"""Chat completions, as OpenAI's own client has them."""

from typing import Any

import pytest
from openai import APIError, InternalServerError
from openai.types.chat import ChatCompletionMessageParam

from tests.gateway.openai.stage import WORDS, OpenAiStage

pytestmark = pytest.mark.long


def user(text: str) -> ChatCompletionMessageParam:
    return {"role": "user", "content": text}


def assistant(text: str) -> ChatCompletionMessageParam:
    return {"role": "assistant", "content": text}


ASK = [user("2 + 3?")]
TOLD = '→ add {"a": 2, "b": 3}'


async def test_a_chat_is_answered_with_what_the_agent_says_and_does(
    openai_stage: OpenAiStage,
) -> None:
    chat = await openai_stage.anna.chat.completions.create(model="adder", messages=ASK)
    [choice] = chat.choices
    assert choice.message.content == "I add.\n\nIt is 5."
    told = f"Two numbers.\n\n{TOLD}\n\n← 5"
    assert choice.message.model_extra == {"reasoning_content": told}
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert (chat.model, chat.object) == ("adder", "chat.completion")
    assert chat.usage is not None
    assert (chat.usage.prompt_tokens, chat.usage.total_tokens) == (7, 10)


async def test_a_chat_is_streamed_as_it_is_answered_whole(openai_stage: OpenAiStage) -> None:
    stream = await openai_stage.anna.chat.completions.create(
        model="adder", messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    first, *between, ending, usage = chunks
    assert first.choices[0].delta.model_dump(exclude_unset=True) == {
        "role": "assistant",
        "content": "",
    }
    assert "".join(chunk.choices[0].delta.content or "" for chunk in between) == (
        "I add.\n\nIt is 5."
    )
    assert ending.choices[0].finish_reason == "stop"
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.total_tokens == 10
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_words_are_streamed_while_they_grow(openai_stage: OpenAiStage) -> None:
    stream = await openai_stage.anna.chat.completions.create(
        model="speaker", messages=ASK, stream=True
    )
    texts = [chunk.choices[0].delta.content async for chunk in stream]
    assert "".join(text or "" for text in texts) == WORDS
    assert len([text for text in texts if text]) > 3


async def test_a_turn_that_fails_is_an_error_that_no_client_repeats(
    openai_stage: OpenAiStage,
) -> None:
    chats = openai_stage.anna.with_options(max_retries=2).chat.completions
    with pytest.raises(InternalServerError) as caught:
        await chats.create(model="broken", messages=ASK)
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.request.headers["x-stainless-retry-count"] == "0"
    stream = await chats.create(model="broken", messages=ASK, stream=True)
    with pytest.raises(APIError):
        [chunk async for chunk in stream]


async def test_what_waits_for_a_person_is_said_with_the_address_of_its_page(
    openai_stage: OpenAiStage,
) -> None:
    raw = await openai_stage.anna.chat.completions.with_raw_response.create(
        model="asker", messages=ASK
    )
    content = raw.parse().choices[0].message.content
    assert content is not None
    name = raw.headers["x-conversation-id"]
    assert content.splitlines() == [
        *("This waits for your approval:", "", '- add {"a": 2, "b": 3}', '- add {"a": 1, "b": 1}'),
        *("", f"{openai_stage.gateway.url}/conversations/{name}"),
    ]


class Chat:
    """A chat of a UI, which sends its whole history each time."""

    def __init__(self, stage: OpenAiStage, name: str, model: str = "adder") -> None:
        self._stage, self._name, self._model = stage, name, model
        self.messages: list[ChatCompletionMessageParam] = []

    async def ask(self, text: str, keep: int | None = None) -> tuple[str, str]:
        """Say something behind the first `keep` messages; return the conversation, the answer."""
        self.messages = [*self.messages[:keep], user(text)]
        raw = await self._stage.anna.chat.completions.with_raw_response.create(
            model=self._model,
            messages=self.messages,
            extra_headers={"X-Conversation-Id": self._name},
        )
        answer = raw.parse().choices[0].message.content
        assert answer is not None
        self.messages.append(assistant(answer))
        return raw.headers["x-conversation-id"], answer


async def user_texts(stage: OpenAiStage, conversation_id: str) -> list[str]:
    """Return what the log of a conversation has of its user."""
    query: dict[str, Any] = {"limit": 1000, "kind": "MessageEvent"}
    path = f"/v1/conversations/{conversation_id}/events"
    page = (await stage.gateway.anna.get(path, params=query)).json()
    messages = [item["llm_message"] for item in page["items"] if item["source"] == "user"]
    return [message["content"][0]["text"] for message in messages]


async def test_a_chat_goes_on_in_its_conversation(openai_stage: OpenAiStage) -> None:
    chat = Chat(openai_stage, "a chat")
    first, _ = await chat.ask("2 + 3?")
    second, answer = await chat.ask("And now?")
    assert (second, answer) == (first, "Answer 2.")
    assert await user_texts(openai_stage, first) == ["2 + 3?", "And now?"]


async def test_a_message_that_was_changed_goes_on_in_a_fork(openai_stage: OpenAiStage) -> None:
    chat = Chat(openai_stage, "a chat with changes")
    first, _ = await chat.ask("2 + 3?")
    await chat.ask("Second.")
    await chat.ask("Third.")
    fork, answer = await chat.ask("Another second.", keep=2)
    assert (fork != first, answer) == (True, "Answer 2.")
    again, answer = await chat.ask("Third.")
    assert (again, answer) == (fork, "Answer 3.")
    regenerated, answer = await chat.ask("Third.", keep=4)
    assert (regenerated not in (first, fork), answer) == (True, "Answer 3.")
    anew, _ = await chat.ask("From the beginning.", keep=0)
    assert await user_texts(openai_stage, first) == ["2 + 3?", "Second.", "Third."]
    assert await user_texts(openai_stage, fork) == ["2 + 3?", "Another second.", "Third."]
    assert await user_texts(openai_stage, regenerated) == ["2 + 3?", "Another second.", "Third."]
    assert await user_texts(openai_stage, anew) == ["From the beginning."]


async def test_a_history_from_elsewhere_is_told_once(openai_stage: OpenAiStage) -> None:
    chat = Chat(openai_stage, "a chat from elsewhere")
    chat.messages = [user("Hi."), assistant("Hello.")]
    name, _ = await chat.ask("2 + 3?")
    await chat.ask("And now?")
    [transcript, newest] = await user_texts(openai_stage, name)
    assert transcript == (
        "This conversation has begun elsewhere:\n\nUser: Hi.\n\nAssistant: Hello.\n\n"
        "The newest message is:\n\n2 + 3?"
    )
    assert newest == "And now?"


async def test_a_uuid_names_the_conversation_itself(openai_stage: OpenAiStage) -> None:
    name = "6f1d2c3b-0a4e-4b7c-9d8e-112233445566"
    assert (await Chat(openai_stage, name.upper()).ask("2 + 3?"))[0] == name
    assert (await openai_stage.gateway.anna.get(f"/v1/conversations/{name}")).status_code == 200


async def test_a_chat_without_a_name_is_a_conversation_that_is_closed_behind_it(
    openai_stage: OpenAiStage,
) -> None:
    names = {(await Chat(openai_stage, "new").ask("2 + 3?"))[0] for _ in range(2)}
    assert len(names) == 2
    for name in names:
        await openai_stage.gateway.wait_until(name, "closed")


async def test_a_task_of_a_chat_ui_is_no_message_of_the_chat(openai_stage: OpenAiStage) -> None:
    chat = Chat(openai_stage, "a chat with a title")
    name, _ = await chat.ask("2 + 3?")
    headers = {"X-Conversation-Id": "a chat with a title", "X-Perdure-Task": "title_generation"}
    asked = await openai_stage.anna.chat.completions.create(
        model="adder", messages=[user("### Task: a title")], extra_headers=headers
    )
    assert asked.choices[0].message.content
    stream = await openai_stage.anna.chat.completions.create(
        model="adder", messages=[user("### Task: tags")], extra_headers=headers, stream=True
    )
    streamed = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(streamed) == asked.choices[0].message.content
    assert await user_texts(openai_stage, name) == ["2 + 3?"]


async def test_a_task_without_a_chat_has_a_conversation_that_no_list_shows(
    openai_stage: OpenAiStage,
) -> None:
    raw = await openai_stage.anna.chat.completions.with_raw_response.create(
        model="adder", messages=ASK, extra_headers={"X-Perdure-Task": "title_generation"}
    )
    assert raw.parse().choices[0].message.content == "I add.\n\nIt is 5."
    await openai_stage.gateway.wait_until(raw.headers["x-conversation-id"], "closed")
    listed = (await openai_stage.gateway.anna.get("/v1/conversations")).json()["items"]
    assert raw.headers["x-conversation-id"] not in [item["id"] for item in listed]


async def test_a_stream_ends_with_done(openai_stage: OpenAiStage) -> None:
    body = {"model": "adder", "messages": [{"role": "user", "content": "2 + 3?"}], "stream": True}
    streamed = await openai_stage.gateway.anna.post("/openai/v1/chat/completions", json=body)
    assert streamed.text.endswith("}\n\ndata: [DONE]\n\n")
    assert streamed.text.count("[DONE]") == 1

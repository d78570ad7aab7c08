"""A recorded, sent or logged text holds no value of a secret."""

import io
import logging
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
)

from perdure.agent.spec import Agent, ModelSpec
from perdure.events.content import (
    ImageContent,
    Message,
    MessageToolCall,
    TextContent,
    ThinkingBlock,
)
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.messages import MessageEvent
from perdure.secrets.masking import (
    MaskedLog,
    MaskingFilter,
    MaskingInterceptor,
    mask_failure,
    mask_model,
    mask_value,
)
from perdure.secrets.registry import Secrets
from perdure.storage.files import FileStore
from tests.builders import TIMESTAMP, observation, user

VALUE = "hunter2-hunter2"
SECRETS = Secrets(None, {"PERDURE_SECRET_TOKEN": VALUE, "PERDURE_SECRET_ROLE": "assistant"})
mask = SECRETS.mask


def test_what_holds_no_value_is_the_very_same() -> None:
    event = user("hello")
    assert mask_value(event, mask) is event


def test_texts_are_masked_at_any_depth_and_our_own_words_are_not() -> None:
    call = MessageToolCall(id="1", name="write", arguments=f'{{"text": "{VALUE}"}}')
    message = Message(role="assistant", content=(TextContent(text=VALUE),), tool_calls=(call,))
    clean = mask_value(message, mask)
    assert VALUE not in clean.model_dump_json()
    assert clean.role == "assistant"
    assert clean.tool_calls is not None
    assert clean.tool_calls[0].arguments == '{"text": "<secret:TOKEN>"}'


TEXTS = st.sampled_from([VALUE, f"x{VALUE}", VALUE.encode().hex(), "hunter2", "assistant", "-", ""])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS | TEXTS.map(lambda url: ImageContent(image_urls=(url,))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.builds(partial(ConversationStateUpdateEvent, timestamp=TIMESTAMP), key=TEXTS, value=VALUES)
)
def test_a_model_is_masked_like_any_value(event: ConversationStateUpdateEvent) -> None:
    assert mask_model(event, SECRETS) == mask_value(event, mask)


def test_parts_of_a_secret_in_two_texts_are_no_secret() -> None:
    message = Message(
        role="user", content=(TextContent(text="hunter2-"), TextContent(text="hunter2"))
    )
    assert mask_model(message, SECRETS) is message


def test_an_image_is_left_alone_and_its_address_is_not() -> None:
    image = ImageContent(image_urls=(f"data:image/png;base64,{VALUE}", f"https://x.org/{VALUE}"))
    assert mask_value(image, mask).image_urls == (
        image.image_urls[0],
        "https://x.org/<secret:TOKEN>",
    )


def test_a_signed_thought_with_a_secret_is_dropped() -> None:
    thoughts = tuple(ThinkingBlock(thinking=text, signature="s") for text in ("so", VALUE))
    message = Message(role="assistant", thinking_blocks=thoughts, reasoning_content=VALUE)
    clean = mask_value(message, mask)
    assert clean.thinking_blocks == thoughts[:1]
    assert clean.reasoning_content == "<secret:TOKEN>"


def update(key: str, value: Any) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=TIMESTAMP, key=key, value=value)


def test_names_of_things_on_the_machine_stay_in_a_spec() -> None:
    spec = Agent(model=ModelSpec(name="m"), workspace=f"/srv/{VALUE}", system_prompt=f"Be {VALUE}.")
    clean = mask_value(update("spec", spec.model_dump(mode="json")), mask)
    agent = Agent.model_validate(clean.value)
    assert (agent.workspace, agent.system_prompt) == (f"/srv/{VALUE}", "Be <secret:TOKEN>.")


def test_state_values_and_their_keys_are_masked() -> None:
    assert mask_value(update("state", {VALUE: [VALUE]}), mask).value == {
        "<secret:TOKEN>": ["<secret:TOKEN>"]
    }
    assert mask_value(update("status", "assistant"), mask).value == "assistant"


async def test_no_secret_gets_into_a_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = MaskedLog(store, "someone", str(uuid.uuid4()), None, SECRETS)
    await log.append([user(f"it is {VALUE}")], base=0, origin=Origin(run="r", activity="1"))
    await log.store_blob(f"\0{VALUE}".encode())
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all(b"<secret:TOKEN>" in body and VALUE.encode() not in body for body in files)
    event = (await log.get(0)).event
    assert isinstance(event, MessageEvent)
    assert event.llm_message.content == (TextContent(text="it is <secret:TOKEN>"),)
    await store.close()


def failure(text: str, *details: Any) -> Exception:
    try:
        try:
            raise KeyError(text)
        except KeyError as error:
            raise ApplicationError("plain", *details, type="T", non_retryable=True) from error
    except ApplicationError as error:
        return error


def test_a_failure_without_values_is_raised_as_it_is() -> None:
    error = failure("no such key")
    assert mask_failure(error, mask) is error


def test_causes_and_details_of_a_failure_are_masked() -> None:
    error = mask_failure(failure(VALUE, {"at": VALUE}), mask)
    assert isinstance(error, ApplicationError)
    assert (error.message, error.type, error.non_retryable) == ("plain", "T", True)
    assert error.details == ({"at": "<secret:TOKEN>"},)
    cause = error.__cause__
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type) == ("'<secret:TOKEN>'", "KeyError")


class Heartbeats(ActivityOutboundInterceptor):
    """A worker that sends heartbeats to nobody."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def heartbeat(self, *details: Any) -> None:
        self.sent += details


class LeakyActivity(ActivityInboundInterceptor):
    """An activity whose heartbeat and error hold a secret."""

    def __init__(self) -> None:
        pass

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self.outbound = outbound

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: ARG002
        self.outbound.heartbeat({"text": VALUE})
        raise ValueError(f"it failed: {VALUE}")


async def test_the_heartbeats_and_the_error_of_an_activity_are_masked() -> None:
    heartbeats = Heartbeats()
    inbound = MaskingInterceptor(lambda: SECRETS).intercept_activity(LeakyActivity())
    inbound.init(heartbeats)
    with pytest.raises(ApplicationError, match="it failed: <secret:TOKEN>"):
        await inbound.execute_activity(ExecuteActivityInput(len, (), None, {}))
    assert heartbeats.sent == [{"text": "<secret:TOKEN>"}]


async def test_a_tool_result_is_masked_by_the_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = MaskedLog(store, "someone", str(uuid.uuid4()), None, SECRETS)
    origin = Origin(run="r", activity="1")
    [entry] = await log.append([observation("a", words=VALUE)], base=0, origin=origin, shared=True)
    assert "<secret:TOKEN>" in entry.event.model_dump_json()
    assert VALUE.encode() not in entry.body
    await store.close()


def test_a_log_line_holds_no_value_in_words_arguments_or_traceback() -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(MaskingFilter(SECRETS))
    logger = logging.Logger("of-this-test")
    logger.addHandler(handler)
    logger.warning("said %s", VALUE, exc_info=failure(VALUE), stack_info=True)
    logger.warning({"as": VALUE})
    assert VALUE not in lines.getvalue()
    assert lines.getvalue().count("<secret:TOKEN>") == 3
    assert "KeyError" in lines.getvalue()

"""What is recorded, told to Temporal and logged holds no value of a secret."""

import io
import logging
import uuid
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.masking import MaskedLog, MaskingFilter, masked, masked_failure
from agent.spec import ModelSpec, Spec
from events.content import ImageContent, Message, MessageToolCall, TextContent, ThinkingBlock
from events.control import ConversationStateUpdateEvent
from events.entry import Origin
from events.messages import MessageEvent
from storage.files import FileStore
from tests.builders import WHEN, user
from tools.secrets.registry import Secrets

VALUE = "hunter2-hunter2"
SECRETS = Secrets(None, {"PERDURE_SECRET_TOKEN": VALUE, "PERDURE_SECRET_ROLE": "assistant"})
mask = SECRETS.mask


def test_what_holds_no_value_is_the_very_same() -> None:
    event = user("hello")
    assert masked(event, mask) is event


def test_every_text_is_masked_however_deep_and_words_of_ours_are_not() -> None:
    call = MessageToolCall(id="1", name="write", arguments=f'{{"text": "{VALUE}"}}')
    message = Message(role="assistant", content=(TextContent(text=VALUE),), tool_calls=(call,))
    clean = masked(message, mask)
    assert VALUE not in clean.model_dump_json()
    assert clean.role == "assistant"
    assert clean.tool_calls is not None
    assert clean.tool_calls[0].arguments == '{"text": "<secret:TOKEN>"}'


def test_an_image_is_left_alone_and_its_address_is_not() -> None:
    image = ImageContent(image_urls=(f"data:image/png;base64,{VALUE}", f"https://x.org/{VALUE}"))
    assert masked(image, mask).image_urls == (image.image_urls[0], "https://x.org/<secret:TOKEN>")


def test_a_signed_thought_is_left_out_as_its_signature_would_not_fit() -> None:
    thoughts = tuple(ThinkingBlock(thinking=text, signature="s") for text in ("so", VALUE))
    message = Message(role="assistant", thinking_blocks=thoughts, reasoning_content=VALUE)
    clean = masked(message, mask)
    assert clean.thinking_blocks == thoughts[:1]
    assert clean.reasoning_content == "<secret:TOKEN>"


def update(key: str, value: Any) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=WHEN, key=key, value=value)


def test_of_a_spec_what_is_found_by_its_name_keeps_it() -> None:
    spec = Spec(model=ModelSpec(name="m"), workspace=f"/srv/{VALUE}", system_prompt=f"Be {VALUE}.")
    clean = masked(update("spec", spec.model_dump(mode="json")), mask)
    found = Spec.model_validate(clean.value)
    assert (found.workspace, found.system_prompt) == (f"/srv/{VALUE}", "Be <secret:TOKEN>.")


def test_state_of_anybody_is_masked_with_its_keys() -> None:
    assert masked(update("state", {VALUE: [VALUE]}), mask).value == {
        "<secret:TOKEN>": ["<secret:TOKEN>"]
    }
    assert masked(update("status", "assistant"), mask).value == "assistant"


async def test_nothing_gets_into_a_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = MaskedLog(store, "someone", str(uuid.uuid4()), None, SECRETS)
    await log.append([user(f"it is {VALUE}")], base=0, origin=Origin(run="r", activity="1"))
    await log.keep(f"\0{VALUE}".encode())
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all(b"<secret:TOKEN>" in body and VALUE.encode() not in body for body in files)
    event = (await log.at(0)).event
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
    assert masked_failure(error, mask) is error


def test_of_a_failure_its_causes_and_details_are_masked_too() -> None:
    told = masked_failure(failure(VALUE, {"at": VALUE}), mask)
    assert isinstance(told, ApplicationError)
    assert (told.message, told.type, told.non_retryable) == ("plain", "T", True)
    assert told.details == ({"at": "<secret:TOKEN>"},)
    cause = told.__cause__
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type) == ("'<secret:TOKEN>'", "KeyError")


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

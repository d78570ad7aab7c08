"""Bodies of requests: what is read of them, and that nothing breaks their reader."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from perdure.gateway.ag_ui.ids import MessageIds, find_conversation_id, find_message_id
from perdure.gateway.ag_ui.requests import (
    NewMessage,
    RunAgentInput,
    find_new_message,
    join_instructions,
    parse_answers,
)
from perdure.gateway.errors import Refused
from tests.gateway.ag_ui.stage import ask, user

SAID = {"id": "a", "role": "assistant", "content": "Hi."}
SYSTEM = {"id": "s", "role": "system", "content": "Be brief."}

MESSAGES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], NewMessage | None]] = {
    "the first one": ([user("Hello?", "1")], (), NewMessage("1", "Hello?")),
    "the newest one": (
        [user("Hello?", "1"), SAID, user("And?", "2")],
        ("1",),
        NewMessage("2", "And?"),
    ),
    "none that is new": ([user("Hello?", "1"), SAID], ("1",), None),
    "none at all": ([SYSTEM], (), None),
    "two that are new": (
        [user("Hello?", "1"), SAID, user("And?", "2"), user("Well?", "3")],
        *(("1",), NewMessage("3", "And?\n\nWell?")),
    ),
    "one behind words of the system": (
        [SYSTEM, user("Hello?", "1")],
        (),
        NewMessage("1", "Hello?"),
    ),
    "one that a history follows": ([user("Hello?", "1"), SAID], (), NewMessage("1", "Hello?")),
    "pictures": (
        [
            user(
                [
                    {"type": "text", "text": "This?"},
                    {"type": "image", "source": {"type": "data", "value": "AA=="}},
                    {"type": "image", "source": {"type": "url", "value": "https://x.org/a.png"}},
                ],
                "1",
            )
        ],
        (),
        NewMessage("1", "This?", ("data:image/png;base64,AA==", "https://x.org/a.png")),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_the_log_lacks_is_said(name: str) -> None:
    messages, known, said = MESSAGES[name]
    body = RunAgentInput.model_validate(ask(*messages))
    assert find_new_message(body.messages, known.__contains__) == said


def test_words_of_the_system_are_instructions() -> None:
    body = RunAgentInput.model_validate(ask(SYSTEM, user("Hi."), {**SYSTEM, "role": "developer"}))
    assert join_instructions(body.messages) == "Be brief.\n\nBe brief."


def test_names_are_the_users_and_ids_stay_where_a_log_can_have_them() -> None:
    name = "01A21750-949C-7AE0-A01F-CCC0EEDFBBE4"
    assert find_conversation_id("anna", name) == name.lower()
    assert find_conversation_id("anna", "chat") != find_conversation_id("ben", "chat")
    assert find_message_id("anna", "msg 7") == "msg 7"
    for strange in ("ö", 'a"', "x" * 129):
        assert find_message_id("anna", strange) == find_message_id("anna", strange) != strange
    ids, others = MessageIds("1"), MessageIds("2")
    for own in (ids.text("a"), ids.reasoning("a"), ids.result("a", "c")):
        assert (ids.is_own(own), others.is_own(own)) == (True, False)
    assert not ids.is_own("msg_1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio"])},
    optional={"text": JSON, "source": JSON},
)
MESSAGE = st.fixed_dictionaries(
    {"id": st.text(min_size=1, max_size=3), "role": st.sampled_from(["user", "assistant"])},
    optional={"content": JSON | st.lists(PART, max_size=2)},
)
ENTRY = st.fixed_dictionaries(
    {"interruptId": st.text(max_size=3), "status": st.sampled_from(["resolved", "cancelled"])},
    optional={"payload": JSON},
)


def read(fields: dict[str, Any]) -> tuple[NewMessage | None, int] | str:
    """Return what is said and how many answers there are, or the sentence of a refusal."""
    try:
        body = RunAgentInput.model_validate(fields)
        said = find_new_message(body.messages, lambda _: False)
        return said, len(parse_answers(body.resume or ()))
    except ValidationError as error:
        return f"{error.errors()[0]['msg']}."
    except Refused as refused:
        return refused.detail


@given(st.lists(MESSAGE, max_size=4), st.lists(ENTRY, max_size=3), JSON)
def test_whatever_comes_is_read_or_refused(
    messages: list[dict[str, Any]], resume: list[dict[str, Any]], state: Any
) -> None:
    found = read(ask(*messages, resume=resume, state=state))
    if isinstance(found, str):
        assert found.endswith(".")
    else:
        said, answers = found
        assert said is None or said.text or said.images
        assert answers == len(resume)

"""The judge and the audit find what is wrong with the objects of a conversation."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
import pytest_asyncio

pytest.importorskip(
    "bfcl_eval", reason="bfcl-eval is missing: pip install --no-deps bfcl-eval mpmath"
)

from examples.bfcl.audit import audit
from examples.bfcl.backends import Worker
from examples.bfcl.dataset import samples
from examples.bfcl.judge import judge
from examples.bfcl.objects import parse_objects
from perdure.storage.files import FileStore
from tests.examples.playing import BenchmarkConversation

SAMPLE = samples()["multi_turn_base_0"]


class TamperedObjects:
    """The stored objects of one conversation, to be changed behind its back."""

    def __init__(self, conversation_id: str, objects: dict[str, bytes]) -> None:
        self.conversation_id = conversation_id
        self.objects = objects

    def first(self, kind: str) -> str:
        """The key of the first event of this kind."""
        return next(event.key for event in parse_objects(self.objects) if event.kind == kind)

    def last(self, kind: str) -> str:
        return [event.key for event in parse_objects(self.objects) if event.kind == kind][-1]

    def fields(self, key: str) -> dict[str, Any]:
        event = json.loads(self.objects[key])
        assert isinstance(event, dict)
        return event

    def change(self, key: str, **fields: Any) -> None:
        self.objects[key] = json.dumps(self.fields(key) | fields).encode()

    def append(self, key: str, **fields: Any) -> None:
        """Put a copy of the event at `key`, with other fields, into the next slot."""
        seq = len(parse_objects(self.objects))
        own = str(uuid5(UUID(self.conversation_id), str(seq)))
        origin = {"run": "another", "activity": str(seq), "position": 0}
        body = self.fields(key) | {"id": own, "origin": origin} | fields
        folder = key.rpartition("/")[0]
        self.objects[f"{folder}/{seq:06d}_{own}.json"] = json.dumps(body).encode()

    def audited(self) -> str:
        return "\n".join(audit(self.conversation_id, self.objects))

    def judged(self) -> str:
        return "\n".join(judge(SAMPLE, self.objects))


@pytest_asyncio.fixture
async def tampered(tmp_path: Path) -> TamperedObjects:
    store = FileStore(tmp_path)
    play = await BenchmarkConversation(store, SAMPLE, Worker()).play_all()
    objects = dict(await play.objects())
    await store.close()
    return TamperedObjects(play.id, objects)


def test_untouched_objects_pass(tampered: TamperedObjects) -> None:
    assert tampered.audited() == ""
    assert tampered.judged() == ""


def test_no_object_at_all_is_found() -> None:
    assert audit(str(uuid4()), {}) == ["There is no event object at all."]


def test_a_lost_event_is_found(tampered: TamperedObjects) -> None:
    del tampered.objects[tampered.first("ActionEvent")]
    assert "Slot 2 is empty, and later slots are not." in tampered.audited()
    assert "which nobody made" in tampered.audited()


def test_a_second_object_in_a_slot_is_found(tampered: TamperedObjects) -> None:
    key = tampered.first("ActionEvent")
    other = f"{key.rpartition('/')[0]}/000002_{uuid4()}.json"
    tampered.objects[other] = tampered.objects[key]
    assert "Slot 2 holds 2 objects." in tampered.audited()
    assert "The key of slot 2 has the id" in tampered.audited()


def test_a_body_in_the_slot_of_another_is_found(tampered: TamperedObjects) -> None:
    tampered.change(tampered.first("ActionEvent"), id=str(uuid4()))
    assert "The body of slot 2 has the id" in tampered.audited()


def test_an_object_that_is_no_json_is_found(tampered: TamperedObjects) -> None:
    tampered.objects[tampered.first("ActionEvent")] = b'{"id": "cut o'
    assert "The body of slot 2 has the id None" in tampered.audited()


def test_a_foreign_name_is_found(tampered: TamperedObjects) -> None:
    folder = tampered.first("ActionEvent").rpartition("/")[0]
    tampered.objects[f"{folder}/2.json"] = b"{}"
    assert "2.json is not the name of an event object." in tampered.audited()


def test_an_event_written_twice_by_one_step_is_found(tampered: TamperedObjects) -> None:
    key = tampered.last("MessageEvent")
    tampered.append(key, origin=tampered.fields(key)["origin"])
    assert "2 events say that activity" in tampered.audited()


def test_a_second_answer_to_a_tool_call_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("ObservationEvent"))
    assert "has 2 answers, not 1." in tampered.audited()


def test_an_error_beside_a_result_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("ObservationEvent"), kind="AgentErrorEvent")
    assert "has 2 answers, not 1." in tampered.audited()


def test_a_tool_call_without_an_answer_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("ActionEvent"), tool_call_id="unanswered")
    assert "Tool call unanswered (slot 29) has 0 answers, not 1." in tampered.audited()


def test_an_answer_without_a_tool_call_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("ObservationEvent"), tool_call_id="unasked")
    assert "Slot 29 answers the tool call unasked, which nobody made." in tampered.audited()


def test_an_answer_that_points_at_another_action_is_found(tampered: TamperedObjects) -> None:
    tampered.change(tampered.first("ObservationEvent"), action_id=str(uuid4()))
    assert "another's action." in tampered.audited()


def test_a_tool_call_on_record_twice_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("ActionEvent"))
    assert "is on record 2 times." in tampered.audited()


def test_an_answer_before_its_tool_call_is_found(tampered: TamperedObjects) -> None:
    observation = tampered.first("ObservationEvent")
    late = str(uuid5(UUID(tampered.conversation_id), "29"))
    tampered.append(tampered.first("ActionEvent"), tool_call_id="late")
    tampered.change(observation, tool_call_id="late", action_id=late)
    assert "was made later, in slot 29." in tampered.audited()


def test_a_message_on_record_twice_is_found(tampered: TamperedObjects) -> None:
    tampered.append(tampered.first("MessageEvent"))
    assert "Message multi_turn_base_0-0 is on record 2 times." in tampered.audited()
    assert "The log has 5 messages of the user, the sample 4." in tampered.judged()


def test_other_words_of_the_user_are_found(tampered: TamperedObjects) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Do something else."}]}
    tampered.change(tampered.first("MessageEvent"), llm_message=message)
    assert "In turn 1 the user says 'Do something else.'" in tampered.judged()


def test_a_missing_last_word_is_found(tampered: TamperedObjects) -> None:
    del tampered.objects[tampered.last("MessageEvent")]
    assert "Turn 4 has no last word of the agent." in tampered.judged()


def test_a_call_of_a_tool_that_is_not_there_is_found(tampered: TamperedObjects) -> None:
    tampered.change(tampered.first("ActionEvent"), tool_name="startEngine")
    assert "the agent calls startEngine, which it does not have" in tampered.judged()


def test_another_state_is_found_by_upstream(tampered: TamperedObjects) -> None:
    action = {"kind": "MCPToolAction", "data": {"dir_name": "elsewhere"}}
    key = next(
        e.key for e in parse_objects(tampered.objects) if e.fields.get("tool_name") == "mkdir"
    )
    tampered.change(key, action=action)
    assert "does not match the state with ground truth instance" in tampered.judged()


def test_a_result_that_upstream_does_not_get_is_found(tampered: TamperedObjects) -> None:
    observation = {
        "kind": "MCPToolObservation",
        "tool_name": "cd",
        "content": [{"type": "text", "text": "all is well"}],
    }
    tampered.change(tampered.first("ObservationEvent"), observation=observation)
    assert "returned 'all is well'; upstream gets" in tampered.judged()

"""A worker leaves out the SDK's visits of payloads where they can change none."""

import hashlib
import inspect
from dataclasses import replace
from typing import Any

import pytest
import temporalio.bridge.worker
from temporalio.bridge._visitor import PayloadVisitor
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter
from temporalio.service import __version__

from perdure.temporal.codec import Encryption
from perdure.temporal.converter import CONVERTER
from perdure.temporal.payload_visits import KNOWN_VERSIONS, VISITS, leave_out_visits
from tests.harness import ConversationHarness, text_answer, tool_call_answer

STEPS = (
    *("decode_reference", "external_retrieve", "decode"),
    *("encode", "external_store", "encode_reference"),
)
"""What the SDK does to payloads, by the names of the converter's methods."""

KNOWN_SOURCES = "ba65a9ea4eecc016"
"""A hash of the SDK's functions and of what they call."""


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages whose payloads are visited from now on."""
    visited: list[Any] = []
    visit = PayloadVisitor.visit

    async def count(visitor: PayloadVisitor, functions: Any, root: Any) -> None:
        visited.append(root)
        await visit(visitor, functions, root)

    monkeypatch.setattr(PayloadVisitor, "visit", count)
    return visited


async def test_the_payloads_of_a_conversation_are_not_visited(
    harness: ConversationHarness, visits: list[Any]
) -> None:
    spec = harness.spec(tool_call_answer(("add", {"a": 1, "b": 1})), text_answer("Two."))
    async with harness.worker():
        talk = await harness.client.start("Add.", spec)
        assert (await talk.result()).text == "Two."
    assert not visits


async def test_a_codec_still_gets_every_payload(visits: list[Any]) -> None:
    leave_out_visits()
    completion = WorkflowActivationCompletion()
    result = completion.successful.commands.add().complete_workflow_execution.result
    result.data = b"rosebud"
    encryption = Encryption({"k1": bytes(32)})
    encrypting = replace(CONVERTER, payload_codec=encryption)
    await temporalio.bridge.worker.encode_completion(completion, CONVERTER, True, 1)
    assert (result.data, visits) == (b"rosebud", [])
    await temporalio.bridge.worker.encode_completion(completion, encrypting, True, 1)
    assert visits
    assert b"rosebud" not in completion.SerializeToString()


def test_functions_of_an_unknown_version_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    originals = [inspect.unwrap(getattr(temporalio.bridge.worker, name)) for name in VISITS]
    for name, original in zip(VISITS, originals, strict=True):
        monkeypatch.setattr(temporalio.bridge.worker, name, original)
    leave_out_visits("1.99.0")
    assert [getattr(temporalio.bridge.worker, name) for name in VISITS] == originals
    leave_out_visits()
    replaced = [getattr(temporalio.bridge.worker, name) for name in VISITS]
    assert [inspect.unwrap(each) for each in replaced] == originals
    leave_out_visits()
    assert [getattr(temporalio.bridge.worker, name) for name in VISITS] == replaced


def test_the_sdk_is_one_whose_visits_are_known() -> None:
    functions = [inspect.unwrap(getattr(temporalio.bridge.worker, name)) for name in VISITS]
    functions += [getattr(DataConverter, f"_{step}_payload_sequence") for step in STEPS]
    source = "".join(inspect.getsource(function) for function in functions)
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    assert (__version__ in KNOWN_VERSIONS, digest) == (True, KNOWN_SOURCES), (
        "Another SDK: see whether its visits still change nothing without a codec and an external "
        "storage, then add its version, and put the new hash here."
    )

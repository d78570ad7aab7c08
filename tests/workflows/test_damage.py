"""A conversation whose log is damaged: it is read, not continued, and forked before the damage."""

import asyncio

import pytest

from perdure.activities.support.resources import Resources
from perdure.client.conversation import Conversation
from perdure.client.fork import fork
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Conflict
from perdure.events.entry import Entry
from perdure.models.router import ModelRouter
from perdure.storage.keys import conversation_prefix, event_key
from tests.cli.command import Perdure, clean_environment
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.watching import entries

pytestmark = pytest.mark.long


@pytest.fixture
def perdure(harness: ConversationHarness, temporal_server: TemporalServer) -> Perdure:
    where = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    return Perdure({**clean_environment(), **where})


async def alter(harness: ConversationHarness, talk: Conversation, entry: Entry) -> None:
    """Have the object say something else, as well formed as it was."""
    key = conversation_prefix("local", talk.id) + event_key(talk.id, entry.seq)
    body = entry.body.replace(b"five", b"nine")
    assert body != entry.body
    await harness.client.store.replace(key, body)


async def test_a_damaged_conversation_is_read_and_not_opened_again(
    harness: ConversationHarness, perdure: Perdure
) -> None:
    async with harness.worker():
        spec = harness.spec(
            text_answer("five it is"), text_answer("here"), text_answer("there"), idle_timeout=0.1
        )
        talk = await harness.client.start("2 + 3?", spec)
        await talk.handle.result()
        whole = await perdure("verify", talk.id, "--all")
        assert whole.code == 2, whole
        whole = await perdure("verify", talk.id)
        assert (whole.code, "whole" in whole.out) == (0, True), whole
        entry = (await entries(talk))[-1]
        await alter(harness, talk, entry)
        sentence = f"The log of {talk.id} is damaged at seq {entry.seq}: it can be read, not"
        await talk.send("Are you there?", message_id="m")
        with pytest.raises(Conflict, match=sentence):
            await talk.wait_for_turn("m")
        with pytest.raises(Conflict, match=f"perdure fork {talk.id} --at {entry.seq - 1}"):
            await talk.submit("Are you there?")
        status = await talk.status()
        assert (status.next_seq, status.status) == (entry.seq + 1, "finished")
        assert sentence in (status.trouble or "")
        assert not await talk.workflow.is_running()
        sent = await perdure("send", talk.id, "Hello?", "--wait")
        assert (sent.code, sentence in sent.err) == (4, True), sent
        forked = await fork(harness.client, talk.id, entry.seq - 1)
        await forked.conversation.send("Are you there?", message_id="m")
        assert (await forked.conversation.wait_for_turn("m")).status == "finished"
    verified, page = await asyncio.gather(
        perdure("verify", "--all", "-ojson"),
        perdure("show", talk.id),
    )
    assert verified.code == 1
    reports = {item["id"]: item for item in verified.json}
    assert reports[forked.conversation.id]["whole"]
    [finding] = reports[talk.id]["findings"]
    assert (finding["seq"], finding["kind"]) == (entry.seq, "damaged")
    assert page.code == 1
    assert f"The object of seq {entry.seq} is damaged" in page.out


async def test_a_step_that_meets_damage_ends_the_workflow_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("five"), text_answer("never said")
    )
    async with harness.worker():
        talk = await harness.client.start("2 + 3?", spec)
        await talk.wait_for_turn()
        entry = (await entries(talk))[-1]
    await alter(harness, talk, entry)
    # A worker that knows nothing of it yet.
    other = ConversationHarness(
        harness.client,
        Resources(harness.client.store, ModelRouter(), harness.resources.workspaces),
        harness.folder,
    )
    async with other.worker():
        await talk.send("And 3 + 4?", message_id="m")
        with pytest.raises(Conflict, match=f"is damaged at seq {entry.seq}: it can be read, not"):
            await talk.wait_for_turn("m")

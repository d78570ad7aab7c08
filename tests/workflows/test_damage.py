"""A conversation whose log is damaged: it is read, not continued, and forked before the damage."""

import asyncio

import pytest

from activities.world import World
from client.conversation import Conversation
from client.errors import Conflict
from client.fork import fork
from embedded.temporal import TemporalServer
from events.entry import Entry
from models.models import Models
from storage.keys import conversation_prefix, event_key
from tests.cli.command import Perdure, clean_environment
from tests.house import House, calls, says
from tests.workflows.watching import entries

pytestmark = pytest.mark.long


@pytest.fixture
def perdure(house: House, temporal_server: TemporalServer) -> Perdure:
    where = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }
    return Perdure({**clean_environment(), **where})


async def alter(house: House, talk: Conversation, entry: Entry) -> None:
    """Have the object say something else, as well formed as it was."""
    key = conversation_prefix("local", talk.id) + event_key(talk.id, entry.seq)
    body = entry.body.replace(b"five", b"nine")
    assert body != entry.body
    await house.client.store.replace(key, body)


async def test_a_damaged_conversation_is_read_and_not_opened_again(
    house: House, perdure: Perdure
) -> None:
    async with house.worker():
        spec = house.spec(says("five it is"), says("here"), says("there"), idle_timeout=0.1)
        talk = await house.client.start("2 + 3?", spec)
        await talk.handle.result()
        whole = await perdure("verify", talk.id, "--all")
        assert whole.code == 2, whole
        whole = await perdure("verify", talk.id)
        assert (whole.code, "whole" in whole.out) == (0, True), whole
        said = (await entries(talk))[-1]
        await alter(house, talk, said)
        sentence = f"The log of {talk.id} is damaged at seq {said.seq}: it can be read, not"
        with pytest.raises(Conflict, match=sentence):
            await talk.send("Are you there?")
        with pytest.raises(Conflict, match=f"perdure fork {talk.id} --at {said.seq - 1}"):
            await talk.resume()
        assert (await talk.status()).next_seq == said.seq + 1
        assert not await talk.remote.is_alive()
        forked = await fork(house.client, talk.id, said.seq - 1)
        await forked.conversation.send("Are you there?", message_id="m")
        assert (await forked.conversation.finished("m")).status == "finished"
    sent, verified, shown = await asyncio.gather(
        perdure("send", talk.id, "Hello?"),
        perdure("verify", "--all", "-ojson"),
        perdure("show", talk.id),
    )
    assert (sent.code, sentence in sent.err) == (4, True), sent
    assert verified.code == 1
    told = {one["id"]: one for one in verified.json}
    assert told[forked.conversation.id]["whole"]
    [finding] = told[talk.id]["findings"]
    assert (finding["seq"], finding["kind"]) == (said.seq, "damaged")
    assert shown.code == 1
    assert f"The object of seq {said.seq} is damaged" in shown.out


async def test_a_step_that_meets_damage_ends_the_workflow_with_a_sentence(house: House) -> None:
    spec = house.spec(calls(("add", {"a": 2, "b": 3})), says("five"), says("never said"))
    async with house.worker():
        talk = await house.client.start("2 + 3?", spec)
        await talk.finished()
        said = (await entries(talk))[-1]
    await alter(house, talk, said)
    # A worker that knows nothing of it yet.
    other = House(
        house.client, World(house.client.store, Models(), house.world.workspaces), house.folder
    )
    async with other.worker():
        await talk.send("And 3 + 4?", message_id="m")
        with pytest.raises(Conflict, match=f"is damaged at seq {said.seq}: it can be read, not"):
            await talk.finished("m")

"""What others share: the same through a gateway and without one."""

import pytest

from perdure.errors import Forbidden, Invalid, NotFound
from perdure.evaluation.messages import LimitsUpdate
from perdure.storage.batches import read_current_results
from perdure.storage.shared import Shared
from tests.client.contract.clients import Clients
from tests.client.contract.test_batches import batches_of, make_spec
from tests.harness import text_answer


async def test_what_is_shared_is_listed_and_forked(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(*map(text_answer, ("One.", "Two.")))
        first = await clients.anna.start("First.", spec)
        second = await clients.anna.start("Second.", spec)
        for conversation in (first, second):
            await conversation.result()
            await conversation.grant("ben", "read")
        await second.grant("ben", "write")
        assert await clients.ben.list_shared() == [
            Shared(owner="anna", id=second.id, access="write"),
            Shared(owner="anna", id=first.id, access="read"),
        ]
        assert [it.id for it in await clients.ben.list_shared(1)] == [second.id]
        assert await clients.anna.list_shared() == []
        forked = await clients.ben.fork(first.id, owner="anna")
        assert forked.conversation.log.user_id == "ben"
        assert await clients.ben.list_conversations() == [forked.conversation.id]
        await first.revoke("ben")
        with pytest.raises(NotFound):
            await clients.ben.fork(first.id, owner="anna")
        assert [it.id for it in await clients.ben.list_shared()] == [second.id]
        await forked.conversation.send("Go on.")
        assert (await forked.conversation.result()).text == "Two."
        own = await clients.anna.fork(second.id, owner="anna")
        assert own.conversation.log.user_id == "anna"


@pytest.mark.long
async def test_a_batch_is_shared(clients: Clients) -> None:
    mine, theirs = batches_of(clients.anna), batches_of(clients.ben)
    async with clients.harness.worker():
        spec = make_spec(clients, "a and b")
        handle = await mine.run(spec)
        await handle.wait_until_finished()
        with pytest.raises(NotFound, match=f"There is no batch anna/{spec.name}"):
            await theirs.batch(spec.name, "anna").status()
        await handle.grant("ben")
        assert [(it.user_id, it.access) for it in await handle.grants()] == [("ben", "read")]
        assert await theirs.list_shared() == [Shared(owner="anna", id=spec.name, access="read")]
        assert await theirs.list_names() == []
        shared = await theirs.get(spec.name, "anna")
        assert (await shared.wait_until_finished()).scored == 3
        results = [
            it async for it in read_current_results(shared.folder, await shared.load_record())
        ]
        assert sorted(it.id for it in results) == ["a", "b", "c"]
        name = results[0].attempts[0].conversation_id
        assert await shared.folder.open_log(name).exists()
        assert (await clients.ben.conversation(name, "anna").status()).status == "finished"
        with pytest.raises(Forbidden, match="not steer"):
            await clients.ben.conversation(name, "anna").send("Hello?")
        for call in (shared.pause, shared.resume):
            with pytest.raises(Forbidden, match=f"You may read the batch anna/{spec.name}"):
                await call()
        for owner_call in (shared.grants, lambda: shared.grant("carl"), lambda: shared.revoke("x")):
            with pytest.raises(Forbidden, match="Only anna can do that, whose batch it is"):
                await owner_call()
        with pytest.raises(Invalid, match="is not a user id"):
            await handle.grant("b/c")
        await handle.revoke("ben")
        with pytest.raises(NotFound):
            await shared.status()
        with pytest.raises(NotFound):
            await clients.ben.conversation(name, "anna").status()
        assert await theirs.list_shared() == []


@pytest.mark.long
async def test_a_shared_batch_is_steered(clients: Clients) -> None:
    spec = make_spec(clients, "a", concurrency=1)
    handle = await batches_of(clients.anna).run(spec)  # no worker takes it up yet
    await handle.grant("ben", "write")
    shared = batches_of(clients.ben).batch(spec.name, "anna")
    await shared.pause()
    async with clients.harness.worker():
        assert (await shared.update_limits(LimitsUpdate(concurrency=2))).concurrency == 2
        await shared.resume()
        assert (await shared.wait_until_finished()).status == "finished"

"""Records a history of every shape of conversation: `python -m tests.record_histories [NAME ...]`.

Run on purpose only, after a change that old histories cannot replay and no running conversation of
a released version needs. A history names no machine: folders and identities are replaced.
"""

import asyncio
import base64
import json
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from temporalio.client import WorkflowHandle

from activities.world import World
from agent.spec import AmortizedCondenser, Confirmation
from client.client import Client
from client.connect import connect
from client.conversation import Conversation
from embedded.temporal import TemporalServer
from models.model import ModelRefused
from models.models import Models
from storage.files import FileStore
from tests.house import House, calls, says
from tests.workers import worker_process
from tests.workflows.batches import Oracle, begun, folder_of, house_of, spec, sums
from tests.workflows.watching import notes, seen, until

HISTORIES = Path(__file__).with_name("histories")

ALWAYS = Confirmation(policy="always")


class Recorded(NamedTuple):
    """A workflow whose history is wanted."""

    handle: WorkflowHandle[Any, Any]


Shape = Callable[[House], Awaitable[Conversation | Recorded]]


async def charging(house: House, talk: Conversation) -> None:
    await seen(lambda: bool(notes(house, talk, "charged")))
    await asyncio.sleep(0.6)  # a heartbeat goes out


def add(nth: int) -> dict[str, Any]:
    return calls(("add", {"a": nth, "b": 1}))


async def a_turn_with_tools(house: House) -> Conversation:
    spec = house.spec(add(1), calls(("fly", {})), calls(("finish", {"message": "ok"})), says("bye"))
    talk = await house.client.start("2 + 3?", spec)
    await talk.finished()
    await talk.submit("And now?", "m")
    await talk.finished("m")
    return talk


async def side_by_side(house: House) -> Conversation:
    pair = calls(("meet", {"name": "a", "other": "b"}), ("meet", {"name": "b", "other": "a"}))
    talk = await house.client.start("meet", house.spec(pair, says("met")))
    await talk.finished()
    return talk


async def paused_resumed_closed(house: House) -> Conversation:
    talk = await house.client.start("go", house.spec(*map(add, range(5)), says("done")))
    await talk.pause()
    await until(talk, "paused")
    await talk.resume()
    await talk.finished()
    await until(talk, "finished")
    await talk.close()
    await talk.handle.result()
    return talk


async def confirmed_and_rejected(house: House) -> Conversation:
    one, two = ("charge", {"amount": 1, "seconds": 0}), ("charge", {"amount": 2, "seconds": 0})
    spec = house.spec(calls(one, two), calls(one), says("done"), confirmation=ALWAYS)
    talk = await house.client.start("charge", spec)
    first, second = [call.tool_call_id for call in (await until(talk, *WAITING)).pending]
    await talk.handle.execute_update("respond", {"accept": True, "calls": [first]})
    await talk.handle.execute_update("respond", {"accept": False, "calls": [second]})
    await until(talk, *WAITING)
    await talk.send("No!", message_id="m")
    await talk.finished("m")
    return talk


WAITING = ("waiting_for_confirmation",)


async def interrupted(house: House) -> Conversation:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 60})), says("ok"))
    talk = await house.client.start("charge", spec)
    await charging(house, talk)
    await talk.handle.signal("interrupt")
    await until(talk, "idle")
    await talk.resume()
    await until(talk, "finished")
    return talk


async def configured_after_a_limit(house: House) -> Conversation:
    spec = house.spec(*map(add, range(3)), says("done"), limits={"max_iterations": 2})
    talk = await house.client.start("go", spec)
    await talk.finished()
    await talk.handle.execute_update("configure", {"limits": {"max_iterations": 9}})
    await talk.handle.execute_update("note", {"title": "A sum", "tags": ["sums"]})
    await talk.resume()
    await until(talk, "finished")
    return talk


async def before_a_deadline(house: House) -> Conversation:
    limits = {"deadline": "2999-01-01T00:00:00.000000"}
    talk = await house.client.start("go", house.spec(add(1), says("done"), limits=limits))
    await talk.finished()
    return talk


async def nudged_and_stuck(house: House) -> Conversation:
    wrong = calls(("fail", {"why": "no"}))
    talk = await house.client.start("go", house.spec(*[wrong] * 6))
    await talk.finished()
    return talk


async def condensed(house: House) -> Conversation:
    spec = house.spec(
        *map(add, range(8)), says("done"), condenser=AmortizedCondenser(max_size=10, keep_first=2)
    )
    talk = await house.client.start("go", spec)
    await talk.finished()
    await until(talk, "finished")
    await talk.handle.signal("condense")
    await asyncio.sleep(1)
    return talk


async def overflowed(house: House) -> Conversation:
    too_long = {"status": 400, "code": "context_length_exceeded"}
    answers = [*map(add, range(4)), {"failures": [too_long] * 8, "content": "done"}]
    talk = await house.client.start("go", house.spec(*answers))
    await talk.finished()
    return talk


async def delegated(house: House) -> Conversation:
    spec = house.spec(
        calls(("delegate", {"task": "find the answer"})),
        says("The answer is 42."),
        says("It is 42."),
        tools=("delegate", "tests.tools_at_hand:TOOLS"),
    )
    talk = await house.client.start("delegate", spec)
    await talk.finished()
    return talk


async def titled(house: House) -> Conversation:
    spec = house.spec(says("hello"))
    spec = spec.model_copy(update={"title_model": spec.model})
    talk = await house.client.start("Say hello", spec)
    await talk.finished()
    async with asyncio.timeout(60):
        while not (await talk.status()).title:
            await asyncio.sleep(0.05)
    return talk


async def cancelled(house: House) -> Conversation:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 60})), says("ok"))
    talk = await house.client.start("charge", spec)
    await charging(house, talk)
    await talk.handle.cancel()
    await talk.handle.result()
    return talk


async def reopened(house: House) -> Conversation:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 60})), says("I will see."), says("again")
    )
    talk = await house.client.start("charge", spec)
    await charging(house, talk)
    await talk.handle.terminate()
    await talk.send("are you there?", message_id="m")
    await talk.finished("m")
    return talk


async def continued_as_new(house: House) -> Conversation:
    talk = await house.client.start("go", house.spec(*map(add, range(170)), says("done")))
    await talk.finished()
    await until(talk, "finished")
    return talk


async def a_call_that_was_lost(house: House) -> Conversation:
    """Needs workers of its own: one of them dies."""
    environment = {
        "TEMPORAL_ADDRESS": house.client.temporal.service_client.config.target_host,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 60})), says("I will check."), heartbeat_timeout=1
    )
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge 5", spec)
        await charging(house, talk)
        one.kill()
        with worker_process(environment, house.folder / "two.log"):
            await talk.finished()
            await until(talk, "finished")
    return talk


async def a_batch(house: House) -> Recorded:
    """Set-up, turns, a failure that is tried again, a pause, and a hand-over to a next run."""
    oracle = Oracle(_sum_or_refusal)
    samples = [*sums(8), sums(9)[8].model_copy(update={"turns": ("1 + 1",), "setup": "true"})]
    batch = spec(name="recorded", concurrency=3, retries={"times": 1, "on": ["configuration"]})
    async with house_of(house, oracle).worker():
        handle = await begun(house, batch, samples, long=60)
        await handle.signal("pause")
        await handle.signal("resume")
        await handle.result()
        first = house.client.temporal.get_workflow_handle(
            handle.id, run_id=handle.first_execution_run_id
        )
    return Recorded(first)


async def a_trial(house: House) -> Recorded:
    oracle = Oracle(_sum_or_refusal)
    [sample] = sums(1)
    sample = sample.model_copy(update={"turns": ("1 + 1",), "files": {"one": "1"}})
    batch = spec(name="trial", batch_limits={"cost": 1.0})
    async with house_of(house, oracle).worker():
        await (await begun(house, batch, [sample])).result()
    [result] = [one async for one in folder_of(house, batch).results()]
    return Recorded(house.client.conversation(result.attempts[0].conversation_id).handle)


def _sum_or_refusal(question: str) -> str | ModelRefused:
    first, _, second = question.partition(" + ")
    if first == "2":
        return ModelRefused("auth", "The key is wrong.")
    return str(int(first) + int(second))


SHAPES: dict[str, Shape] = {
    shape.__name__.replace("_", "-"): shape
    for shape in (
        a_turn_with_tools,
        side_by_side,
        paused_resumed_closed,
        confirmed_and_rejected,
        interrupted,
        configured_after_a_limit,
        before_a_deadline,
        nudged_and_stuck,
        condensed,
        overflowed,
        delegated,
        titled,
        cancelled,
        reopened,
        continued_as_new,
        a_call_that_was_lost,
        a_batch,
        a_trial,
    )
}

WITH_WORKERS = (a_call_that_was_lost, a_batch, a_trial)
"""Those that start workers of their own."""


async def record(name: str, server: TemporalServer, folder: Path) -> None:
    folder.mkdir()
    client = Client(
        await connect(server.address), FileStore(folder / "store"), task_queue=f"q-{uuid.uuid4()}"
    )
    house = House(client, World(client.store, Models(), folder / "workspaces"), folder)
    shape = SHAPES[name]
    if shape in WITH_WORKERS:
        talk = await shape(house)
    else:
        async with house.worker():
            talk = await shape(house)
            await asyncio.sleep(0.5)  # what is saved at rest belongs to the shape
    history = json.loads((await talk.handle.fetch_history()).to_json())
    path = HISTORIES / f"{name}.json"
    path.write_text(json.dumps(_anonymous(history, str(folder)), indent=1) + "\n")
    print(name, len(history["events"]))


def _anonymous(value: Any, folder: str) -> Any:
    """The history without identities and folders, also where these are inside a payload."""
    if isinstance(value, list):
        return [_anonymous(one, folder) for one in value]
    if not isinstance(value, dict):
        return value.replace(folder, "/scripts") if isinstance(value, str) else value
    if "data" in value and "metadata" in value:
        data = base64.b64decode(value["data"]).replace(folder.encode(), b"/scripts")
        return {**value, "data": base64.b64encode(data).decode()}
    return {
        key: "worker" if key == "identity" else _anonymous(one, folder)
        for key, one in value.items()
    }


async def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        server = await TemporalServer.start(Path(name) / "temporal", ui=False)
        try:
            for shape in names or list(SHAPES):
                await record(shape, server, Path(name) / shape)
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

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
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from temporalio.client import WorkflowHandle

from perdure.activities.support.resources import Resources
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.agent.policies import Confirmation
from perdure.agent.spec import AmortizedCondenser
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.models.model import ModelRefused
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from perdure.temporal.names import sessions_workflow_id
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import worker_process
from tests.workflows.batches import (
    FakeModel,
    batch_folder,
    make_sums,
    spec,
    start_batch,
    with_model,
)
from tests.workflows.discussion.debate import PASS, ballot, debate, wants
from tests.workflows.discussion.debate import start as start_discussion
from tests.workflows.watching import notes, wait_for_status, wait_until

HISTORIES = Path(__file__).with_name("histories")

ALWAYS = Confirmation(policy="always")


class RecordResult(NamedTuple):
    """A workflow whose history is wanted."""

    handle: WorkflowHandle[Any, Any]


Shape = Callable[[ConversationHarness], Awaitable[Conversation | RecordResult]]


async def charging(harness: ConversationHarness, talk: Conversation) -> None:
    await wait_until(lambda: bool(notes(harness, talk, "charged")))
    await asyncio.sleep(0.6)  # a heartbeat goes out


def add(nth: int) -> dict[str, Any]:
    return tool_call_answer(("add", {"a": nth, "b": 1}))


async def a_turn_with_tools(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        add(1),
        tool_call_answer(("fly", {})),
        tool_call_answer(("finish", {"message": "ok"})),
        text_answer("bye"),
    )
    talk = await harness.client.start("2 + 3?", spec)
    await talk.wait_for_turn()
    await talk.submit("And now?", "m")
    await talk.wait_for_turn("m")
    return talk


async def ended_while_waiting(harness: ConversationHarness) -> Conversation:
    """Ends idle with actions that nobody has confirmed."""
    talk = await harness.client.start(
        "Add.", harness.spec(add(1), confirmation=ALWAYS, idle_timeout=1)
    )
    await talk.handle.result()
    return talk


async def side_by_side(harness: ConversationHarness) -> Conversation:
    pair = tool_call_answer(
        ("meet", {"name": "a", "other": "b"}), ("meet", {"name": "b", "other": "a"})
    )
    talk = await harness.client.start("meet", harness.spec(pair, text_answer("met")))
    await talk.wait_for_turn()
    return talk


async def paused_resumed_closed(harness: ConversationHarness) -> Conversation:
    talk = await harness.client.start("go", harness.spec(*map(add, range(5)), text_answer("done")))
    await talk.pause()
    await wait_for_status(talk, "paused")
    await talk.resume()
    await talk.wait_for_turn()
    await wait_for_status(talk, "finished")
    await talk.close()
    await talk.handle.result()
    return talk


async def confirmed_and_rejected(harness: ConversationHarness) -> Conversation:
    first_call, second_call = (
        ("charge", {"amount": 1, "seconds": 0}),
        ("charge", {"amount": 2, "seconds": 0}),
    )
    spec = harness.spec(
        tool_call_answer(first_call, second_call),
        tool_call_answer(first_call),
        text_answer("done"),
        confirmation=ALWAYS,
    )
    talk = await harness.client.start("charge", spec)
    first, second = [call.tool_call_id for call in (await wait_for_status(talk, *WAITING)).pending]
    await talk.handle.execute_update("respond", {"accept": True, "calls": [first]})
    await talk.handle.execute_update("respond", {"accept": False, "calls": [second]})
    await wait_for_status(talk, *WAITING)
    await talk.send("No!", message_id="m")
    await talk.wait_for_turn("m")
    return talk


WAITING = ("waiting_for_confirmation",)


async def interrupted(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})), text_answer("ok")
    )
    talk = await harness.client.start("charge", spec)
    await charging(harness, talk)
    await talk.handle.signal("interrupt")
    await wait_for_status(talk, "idle")
    await talk.resume()
    await wait_for_status(talk, "finished")
    return talk


async def configured_after_a_limit(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(*map(add, range(3)), text_answer("done"), limits={"max_iterations": 2})
    talk = await harness.client.start("go", spec)
    await talk.wait_for_turn()
    await talk.handle.execute_update("configure", {"limits": {"max_iterations": 9}})
    await talk.handle.execute_update("note", {"title": "A sum", "tags": ["sums"]})
    await talk.resume()
    await wait_for_status(talk, "finished")
    return talk


async def before_a_deadline(harness: ConversationHarness) -> Conversation:
    limits = {"deadline": "2999-01-01T00:00:00.000000"}
    talk = await harness.client.start(
        "go", harness.spec(add(1), text_answer("done"), limits=limits)
    )
    await talk.wait_for_turn()
    return talk


async def nudged_and_stuck(harness: ConversationHarness) -> Conversation:
    wrong = tool_call_answer(("fail", {"why": "no"}))
    talk = await harness.client.start("go", harness.spec(*[wrong] * 6))
    await talk.wait_for_turn()
    return talk


async def condensed(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        *map(add, range(8)),
        text_answer("done"),
        condenser=AmortizedCondenser(max_size=10, keep_first=2),
    )
    talk = await harness.client.start("go", spec)
    await talk.wait_for_turn()
    await wait_for_status(talk, "finished")
    await talk.handle.signal("condense")
    await asyncio.sleep(1)
    return talk


async def overflowed(harness: ConversationHarness) -> Conversation:
    too_long = {"status": 400, "code": "context_length_exceeded"}
    answers = [*map(add, range(4)), {"failures": [too_long] * 8, "content": "done"}]
    talk = await harness.client.start("go", harness.spec(*answers))
    await talk.wait_for_turn()
    return talk


async def delegated(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "find the answer"})),
        text_answer("The answer is 42."),
        text_answer("It is 42."),
        tools=("delegate", "tests.example_tools:TOOLS"),
    )
    talk = await harness.client.start("delegate", spec)
    await talk.wait_for_turn()
    return talk


async def titled(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(text_answer("hello"))
    spec = spec.model_copy(update={"title_model": spec.model})
    talk = await harness.client.start("Say hello", spec)
    await talk.wait_for_turn()
    async with asyncio.timeout(60):
        while not (await talk.status()).title:
            await asyncio.sleep(0.05)
    return talk


async def cancelled(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})), text_answer("ok")
    )
    talk = await harness.client.start("charge", spec)
    await charging(harness, talk)
    await talk.handle.cancel()
    await talk.handle.result()
    return talk


async def reopened(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})),
        text_answer("I will see."),
        text_answer("again"),
    )
    talk = await harness.client.start("charge", spec)
    await charging(harness, talk)
    await talk.handle.terminate()
    await talk.send("are you there?", message_id="m")
    await talk.wait_for_turn("m")
    return talk


async def continued_as_new(harness: ConversationHarness) -> Conversation:
    talk = await harness.client.start(
        "go", harness.spec(*map(add, range(170)), text_answer("done"))
    )
    await talk.wait_for_turn()
    await wait_for_status(talk, "finished")
    return talk


async def saved_locally(harness: ConversationHarness) -> Conversation:
    """Two turns of an agent that does not ask for local steps."""
    spec = harness.spec(add(1), text_answer("1"), text_answer("2"))
    talk = await harness.client.start("go", spec)
    await talk.wait_for_turn()
    await talk.send("go on", message_id="m")
    await talk.wait_for_turn("m")
    return talk


async def local_calls(harness: ConversationHarness) -> Conversation:
    """Brief calls, one of them slow and one over the limit, calls in a row, and a pause."""
    spec = harness.spec(
        add(1),
        tool_call_answer(
            ("meet", {"name": "a", "other": "b"}), ("meet", {"name": "b", "other": "a"})
        ),
        tool_call_answer(("look", {"seconds": 0}), ("add", {"a": 1, "b": 2})),
        tool_call_answer(("dawdle", {"seconds": 1.3})),
        tool_call_answer(("look", {"seconds": 0.6})),
        add(2),
        text_answer("done"),
        tools=("tests.example_tools:BRIEF_TOOLS",),
        local_activities=True,
    )
    talk = await harness.client.start("go", spec)
    await wait_until(lambda: len(notes(harness, talk, "looked")) == 2)
    await talk.pause()
    await wait_for_status(talk, "paused")
    await talk.resume()
    await talk.wait_for_turn()
    await wait_for_status(talk, "finished")
    await talk.close()
    await talk.handle.result()
    return talk


async def a_call_that_was_lost(harness: ConversationHarness) -> Conversation:
    """Needs workers of its own: one of them dies."""
    environment = {
        "TEMPORAL_ADDRESS": harness.client.temporal.service_client.config.target_host,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})),
        text_answer("I will check."),
        heartbeat_timeout=1,
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge 5", spec)
        await charging(harness, talk)
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            await talk.wait_for_turn()
            await wait_for_status(talk, "finished")
    return talk


def counting(harness: ConversationHarness, limit: int) -> ConversationHarness:
    """Return the harness with a client whose conversations count."""
    client = harness.client
    counts = Client(client.temporal, client.store, "anna", client.task_queue, session_limit=limit)
    return replace(harness, client=counts)


async def waits(harness: ConversationHarness) -> Conversation:
    """Record waits that end by their time, by a signal, by an answer and by a message."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("wait", {"for": "1s"}),
        ("wait", {"signal": "paid", "for": "1w"}),
        ("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]}),
        ("ask_user", {"question": "Are you sure?", "for": "1d"}),
    ]
    answers = (*map(tool_call_answer, calls), text_answer("done"))
    spec = harness.spec(*answers, tools=("wait", "ask_user", "finish"))
    talk = await harness.client.start("go", spec)
    await wait_for_status(talk, "waiting")
    await talk.signal("early", 1)
    while (await talk.state()).iterations < 2:
        await asyncio.sleep(0.1)
    await wait_for_status(talk, "waiting")
    await talk.pause()
    await wait_for_status(talk, "paused")
    await talk.resume()
    await wait_for_status(talk, "waiting")
    await talk.handle.signal("send_signal", {"name": "paid", "data": {"amount": 12}})
    await wait_for_status(talk, "waiting_for_answer")
    await talk.answer(choice="blue")
    while (await talk.state()).iterations < 4:
        await asyncio.sleep(0.1)
    await wait_for_status(talk, "waiting_for_answer")
    await talk.send("Yes.", message_id="m")
    await talk.wait_for_turn("m")
    return talk


async def suspended(harness: ConversationHarness) -> Conversation:
    """Record a conversation that another one suspends, and that goes on by a message."""
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})), text_answer("I will see.")
    )
    counts = counting(harness, 1)
    talk = await counts.client.start("charge", spec)
    await charging(counts, talk)
    other = await counts.client.start("hello", harness.spec(text_answer("hello")))
    await other.result()
    await talk.submit("Go on.", "m")
    await talk.wait_for_turn("m")
    await wait_for_status(talk, "finished")
    return talk


async def sessions(harness: ConversationHarness) -> RecordResult:
    """The sessions of a user with more conversations than may work at once."""
    counts = counting(harness, 2)
    for _ in range(4):
        endless = harness.spec({"content": "one two three", "chunk_delay": 60})
        talk = await counts.client.start("count", endless)
        await wait_for_status(talk, "running")
    hello = await counts.client.start("hello", harness.spec(text_answer("hello")))
    await hello.result()
    await (await counts.client.start("hello", harness.spec(text_answer("hello")))).result()
    await talk.close()
    return RecordResult(
        harness.client.temporal.get_workflow_handle(
            sessions_workflow_id("anna", harness.client.task_queue)
        )
    )


async def a_batch(harness: ConversationHarness) -> RecordResult:
    """Set-up, turns, a failure that is tried again, a pause, and a hand-over to a next run."""
    oracle = FakeModel(_sum_or_refusal)
    samples = [
        *make_sums(8),
        make_sums(9)[8].model_copy(update={"turns": ("1 + 1",), "setup": "true"}),
    ]
    batch = spec(name="recorded", concurrency=3, retries={"times": 1, "on": ["configuration"]})
    async with with_model(harness, oracle).worker():
        handle = await start_batch(harness, batch, samples, long=60)
        await handle.signal("pause")
        await handle.signal("resume")
        await handle.result()
        first = harness.client.temporal.get_workflow_handle(
            handle.id, run_id=handle.first_execution_run_id
        )
    return RecordResult(first)


async def a_trial(harness: ConversationHarness) -> RecordResult:
    oracle = FakeModel(_sum_or_refusal)
    [sample] = make_sums(1)
    sample = sample.model_copy(update={"turns": ("1 + 1",), "files": {"one": "1"}})
    batch = spec(name="trial", batch_limits={"cost": 1.0})
    async with with_model(harness, oracle).worker():
        await (await start_batch(harness, batch, [sample])).result()
    [result] = [item async for item in batch_folder(harness, batch).read_results()]
    return RecordResult(harness.client.conversation(result.attempts[0].conversation_id).handle)


def _debate(harness: ConversationHarness) -> DiscussionSpec:
    endless = {"content": "one two three", "chunk_delay": 60}
    return debate(
        harness.folder,
        {
            "ada": [wants(2), "Yes.", PASS, ballot("yes")],
            "bob": [wants(9), endless, "", ballot("no")],
        },
        moderator=["They have begun.", "They have decided."],
        phases=[{"name": "talk"}, {"name": "decision", "end": "vote"}],
        limits={"turn_time": 3, "time": 3600},
    )


async def a_discussion(harness: ConversationHarness) -> RecordResult:
    """A person's speech and vote, a pause, a turn that takes too long, and a silent agent."""
    handle = await start_discussion(harness, _debate(harness), is_paused=True)
    vote = {"type": "VOTE", "content": "yes", "speaker": "eve"}
    await handle.signal("say", vote)
    await handle.signal("say", {"content": "Listen.", "speaker": "eve"})
    await handle.signal("resume")
    await handle.result()
    return RecordResult(handle)


async def a_discussion_that_was_closed(harness: ConversationHarness) -> RecordResult:
    """Continued as new, and closed while an agent speaks."""
    handle = await start_discussion(harness, _debate(harness), max_run_events=20)
    while "bob" not in (await handle.query("status", result_type=DiscussionStatus)).speeches:
        await asyncio.sleep(0.1)
    await handle.signal("close")
    await handle.result()
    return RecordResult(handle)


async def a_turn_of_a_discussion(harness: ConversationHarness) -> Conversation:
    spec = debate(harness.folder, {"ada": [wants(1), "I speak."]})
    handle = await start_discussion(harness, spec, session_id="recorded")
    await handle.result()
    key = DiscussionKey(user_id=harness.client.user_id, session_id="recorded")
    return harness.client.conversation(speaker_conversation_id(key, "ada"))


def _sum_or_refusal(question: str) -> str | ModelRefused:
    first, _, second = question.partition(" + ")
    if first == "2":
        return ModelRefused("auth", "The key is wrong.")
    return str(int(first) + int(second))


SHAPES: dict[str, Shape] = {
    shape.__name__.replace("_", "-"): shape
    for shape in (
        a_turn_with_tools,
        ended_while_waiting,
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
        saved_locally,
        local_calls,
        suspended,
        sessions,
        a_call_that_was_lost,
        waits,
        a_batch,
        a_trial,
        a_discussion,
        a_discussion_that_was_closed,
        a_turn_of_a_discussion,
    )
}

WITH_WORKERS = (a_call_that_was_lost, a_batch, a_trial)
"""Those that start workers of their own."""


async def record(name: str, server: TemporalServer, folder: Path) -> None:
    folder.mkdir()
    client = Client(
        await connect(server.address), FileStore(folder / "store"), task_queue=f"q-{uuid.uuid4()}"
    )
    harness = ConversationHarness(
        client, Resources(client.store, ModelRouter(), folder / "workspaces"), folder
    )
    shape = SHAPES[name]
    if shape in WITH_WORKERS:
        talk = await shape(harness)
    else:
        async with harness.worker():
            talk = await shape(harness)
            await asyncio.sleep(0.5)  # what is saved at rest belongs to the shape
    history = json.loads((await talk.handle.fetch_history()).to_json())
    path = HISTORIES / f"{name}.json"
    path.write_text(json.dumps(_anonymous(history, str(folder)), indent=1) + "\n")
    print(name, len(history["events"]))


def _anonymous(value: Any, folder: str) -> Any:
    """The history without identities and folders, also where these are inside a payload."""
    if isinstance(value, list):
        return [_anonymous(item, folder) for item in value]
    if not isinstance(value, dict):
        return value.replace(folder, "/scripts") if isinstance(value, str) else value
    if "data" in value and "metadata" in value:
        data = base64.b64decode(value["data"]).replace(folder.encode(), b"/scripts")
        return {**value, "data": base64.b64encode(data).decode()}
    return {
        key: "worker" if key == "identity" else _anonymous(item, folder)
        for key, item in value.items()
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

"""What a conversation becomes in the memories of its user."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.memory import MemoryAccess
from perdure.agent.spec import Agent
from perdure.api.memories import PutMemory
from perdure.events.condensation import Condensation
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.memory.ingest import ingest_conversation
from perdure.memory.ingestion import ConversationMemories, split_text
from perdure.memory.service import MemoryService
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from tests.builders import CONVERSATION, TIMESTAMP, agent, entries, state_update, user
from tests.logs import recall_event, system_message
from tests.storage.memory import MemoryStore

AGENT = Agent(model="scripted:none", memory=MemoryAccess(app="shop", tags=("old",)), tags=("june",))


def memories_of(*events: AnyEvent) -> list[PutMemory]:
    collected = ConversationMemories(CONVERSATION)
    for entry in entries(events):
        collected.add(entry)
    return list(collected.build(AGENT))


def test_a_conversation_becomes_a_summary_and_its_turns() -> None:
    summary, first, second = memories_of(
        state_update("title", "Two questions"),
        user("What is 2 + 3?"),
        recall_event("Be brief."),
        agent("Let me see."),
        agent("It is 5."),
        user("And 2 + 4?"),
        system_message("Two answers are left."),
        agent("It is 6."),
    )
    assert first.text == "User: What is 2 + 3?\n\nAgent: Let me see.\n\nIt is 5."
    assert second.text == "User: And 2 + 4?\n\nAgent: It is 6."
    assert summary.text == (
        "Two questions\n\nThe request: What is 2 + 3?\n\nThe last answer: It is 6."
    )
    assert [it.key for it in (summary, first, second)] == [
        f"conversation:{CONVERSATION}:{name}" for name in ("summary", "turn:0", "turn:1")
    ]
    assert {(it.app, it.tags) for it in (summary, first, second)} == {("shop", ("old", "june"))}
    assert second.metadata == {"part": "turn:1", "title": "Two questions", "seq": 5}


def test_memories_belong_to_the_app_of_the_conversation_unless_the_agent_names_another() -> None:
    of_app = Agent(model="scripted:none", app_name="shop")
    named = Agent(model="scripted:none", app_name="shop", memory=MemoryAccess(app=""))
    assert (of_app.memory_app, named.memory_app, AGENT.memory_app) == ("shop", "", "shop")
    assert Agent(model="scripted:none").memory_app == ""


def test_a_summary_of_a_model_is_taken_as_it_is() -> None:
    condensation = Condensation(timestamp=TIMESTAMP, summary="They counted apples.")
    summary, _ = memories_of(user("Count."), condensation, agent("Done."))
    assert summary.text == "They counted apples."


def test_a_conversation_without_a_message_becomes_nothing() -> None:
    assert memories_of(state_update("title", "Empty"), agent("Hello.")) == []


def test_a_long_turn_becomes_several_memories_of_which_none_is_too_large() -> None:
    _, *parts = memories_of(user("word " * 5000), agent("Yes."))
    assert len(parts) == 7
    assert all(len(part.text) <= 4000 for part in parts)
    assert [part.key for part in parts][:2] == [
        f"conversation:{CONVERSATION}:turn:0",
        f"conversation:{CONVERSATION}:turn:0:1",
    ]
    assert parts[-1].text.endswith("Yes.")


@given(st.text(st.sampled_from("ab \n"), max_size=300), st.integers(4, 40))
def test_splitting_loses_only_space(text: str, size: int) -> None:
    parts = split_text(text, size)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(part) <= size for part in parts)


async def test_an_ingestion_that_goes_on_late_takes_nothing_back() -> None:
    short, long = (
        (user("One?"), agent("1.")),
        (user("One?"), agent("1."), user("Two?"), agent("2.")),
    )
    memory = MemoryService(MemoryStore()).of_user("anna")
    logs = [await write_log(events) for events in (short, long)]
    for log, new in ((logs[0], 2), (logs[1], 2), (logs[0], 0), (logs[1], 0)):
        assert (await ingest_conversation(memory, log, AGENT)).new == new
    texts = {it.key: it.text for it in await memory.list_memories(10)}
    assert texts[f"conversation:{CONVERSATION}:summary"].endswith("The last answer: 2.")
    assert len(texts) == 3


async def write_log(events: Sequence[AnyEvent]) -> LogReader:
    store = MemoryStore()
    log = EventLog(store, "anna", CONVERSATION)
    await log.append(list(events), base=0, origin=Origin(run="r", activity="1"))
    return LogReader(store, "anna", CONVERSATION)

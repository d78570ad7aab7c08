"""Turns as neutral parts: tables of frames, and what follows from them."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.start import PendingCall
from perdure.agent.loop.state import State, ToolTraits
from perdure.agent.loop.status import Status
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.api.frames import (
    DeltaFrame,
    DurableFrame,
    ErrorFrame,
    Frame,
    ItemAbortedFrame,
    NoticeFrame,
    SyncFrame,
)
from perdure.api.notices import TOO_MANY_CONVERSATIONS
from perdure.events.actions import MCPToolAction
from perdure.events.condensation import Condensation
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    StuckEvent,
)
from perdure.events.entry import Origin, make_entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import FinishObservation, MCPToolObservation
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.events.waiting import QuestionEvent
from perdure.gateway.turns.parts import (
    Asked,
    Called,
    Condensed,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)
from perdure.gateway.turns.reader import TurnReader

SEQ = 4
"""The slot of the user's message."""

SPEC = Agent(model="scripted:none", confirmation=Confirmation(policy="always"))

TIME = {"timestamp": "2026-01-01T00:00:00.000000"}
ITEM = "run:5"


def durable(seq: int, event: AnyEvent, activity: str = "5", cost: float = 0.0) -> DurableFrame:
    usage = Usage(cost=cost) if cost else None
    entry = make_entry(seq, event, Origin(run="run", activity=activity), usage)
    return DurableFrame(seq=seq, entry=json.loads(entry.body))


def says(text: str, reasoning: str | None = None, **more: Any) -> MessageEvent:
    content = (TextContent(text=text),) if text else ()
    message = Message(role="assistant", content=content, reasoning_content=reasoning)
    fields = {**TIME, "llm_response_id": "r", **more}
    return MessageEvent(source="agent", llm_message=message, **fields)


def calls(name: str, thought: str = "", call_id: str = "c") -> ActionEvent:
    return ActionEvent(
        **TIME,
        id=f"id-{call_id}",
        action=MCPToolAction(data={"a": 1}),
        thought=(TextContent(text=thought),) if thought else (),
        tool_name=name,
        tool_call_id=call_id,
        tool_call=MessageToolCall(id=call_id, name=name, arguments='{"a":1}', origin="completion"),
        llm_response_id="r",
    )


def returns(text: str, name: str = "add", *, is_error: bool = False) -> ObservationEvent:
    content = (TextContent(text=text),)
    observation = MCPToolObservation(content=content, is_error=is_error, tool_name=name)
    ids = {"action_id": "id-c", "tool_name": name, "tool_call_id": "c"}
    return ObservationEvent(**TIME, **ids, source="environment", observation=observation)


def finishes(text: str) -> ObservationEvent:
    observation = FinishObservation(content=(TextContent(text=text),))
    ids = {"action_id": "id-c", "tool_name": "finish", "tool_call_id": "c"}
    return ObservationEvent(**TIME, **ids, source="environment", observation=observation)


def fails(text: str, name: str = "add") -> AgentErrorEvent:
    ids = {"action_id": "id-c", "tool_name": name, "tool_call_id": "c"}
    return AgentErrorEvent(**TIME, **ids, error=text, classification="bad_arguments")


def rejects(reason: str, call_id: str = "c") -> UserRejectObservation:
    ids = {"action_id": f"id-{call_id}", "tool_name": "add", "tool_call_id": call_id}
    return UserRejectObservation(**TIME, **ids, rejection_reason=reason)


def updates(key: str, value: Any) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(**TIME, key=key, value=value)


def delta(
    text: str, offset: int = 0, attempt: int = 1, step: str = "llm.chat", item_id: str = "5"
) -> DeltaFrame:
    fields = {"item_id": item_id, "run": "run", "step": step, "order": 0}
    return DeltaFrame(**fields, attempt=attempt, offset=offset, text=text)


def begins(seq: int = SEQ) -> DurableFrame:
    message = Message(role="user", content=(TextContent(text="Hello?"),))
    return durable(seq, MessageEvent(source="user", **TIME, llm_message=message), "4")


def read(*frames: Frame, state: State | None = None) -> list[Part]:
    reader = TurnReader(state or State(next_seq=SEQ))
    return [part for frame in frames for part in reader.take(frame)]


def end(seq: int, name: Status = "finished", reason: str | None = None, cost: float = 0.0) -> Ended:
    return Ended(name, reason, Usage(cost=cost), seq)


def whole(text: str, item_id: str = ITEM, *, final: bool = False) -> Text:
    """Return the one piece of a short text."""
    return Text(item_id, text, last=True, final=final, whole=text)


CALLED = Called(ITEM, "c", "add", '{"a":1}')
LONG = "Some words that are a long text."
PIECES = [
    *(Text(ITEM, "Some "), Text(ITEM, "words "), Text(ITEM, "that "), Text(ITEM, "are a ")),
    Text(ITEM, "long "),
]
LAST = Text(ITEM, "text.", last=True, final=True, whole=LONG)

CASES: dict[str, tuple[list[Frame], list[Part]]] = {
    "an answer": (
        [durable(5, says("Hi."), cost=0.5)],
        [whole("Hi.", final=True), end(5, cost=0.5)],
    ),
    "an answer that comes whole": ([durable(5, says(LONG))], [*PIECES, LAST, end(5)]),
    "an answer that grows": (
        [delta("Some wo"), delta("rds that are", 7), durable(5, says(LONG))],
        [*PIECES, LAST, end(5)],
    ),
    "reasoning": (
        [durable(5, says("Hi.", "Hm."))],
        [whole("Hi.", final=True), Reasoning(ITEM, "Hm."), end(5)],
    ),
    "reasoning, and words that grow": (
        [delta("Some words th"), durable(5, says(LONG, "Hm."))],
        [*PIECES, LAST, Reasoning(ITEM, "Hm."), end(5)],
    ),
    "a call": (
        [
            durable(5, calls("add", "I add.")),
            durable(6, returns("2"), "6"),
            durable(7, says("It is 2."), "7"),
        ],
        [
            whole("I add."),
            CALLED,
            Returned("c", "add", "2"),
            Text("run:7", "It is "),
            Text("run:7", "2.", last=True, final=True, whole="It is 2."),
            end(7),
        ],
    ),
    "a condensation": (
        [durable(5, Condensation(**TIME, forgotten_event_ids=("a", "b"), summary="Sums."))],
        [Condensed(ITEM, 2, "Sums.")],
    ),
    "a call without words": ([durable(5, calls("add"))], [CALLED]),
    "calls side by side": (
        [delta("I ad"), durable(5, calls("add", "I add.")), durable(6, calls("sub", "", "d"))],
        [whole("I add."), CALLED, Called(ITEM, "d", "sub", '{"a":1}')],
    ),
    "words that come before the result of a call is read": (
        [
            durable(5, calls("add")),
            delta("Some words", item_id="7"),
            durable(6, returns("2"), "6"),
        ],
        [CALLED, Returned("c", "add", "2"), Text("run:7", "Some ")],
    ),
    "words that come before those of another response are read": (
        [delta("Some words"), delta("Other words", item_id="7"), durable(5, calls("add", "Some"))],
        [Text(ITEM, "Some "), Text(ITEM, "\nSome", last=True, whole="Some"), CALLED],
    ),
    "a call that fails": (
        [durable(5, calls("add")), durable(6, fails("no"), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "a result that is an error": (
        [durable(5, calls("add")), durable(6, returns("no", is_error=True), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "a call that is rejected": (
        [durable(5, calls("add")), durable(6, rejects("no"), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "the tool that ends a turn": (
        [durable(5, calls("finish", "Done so.")), durable(6, finishes("Done."), "6")],
        [
            *(Text(ITEM, "Done "), Text(ITEM, "so.", last=True, whole="Done so.")),
            *(whole("Done.", "run:6", final=True), end(6)),
        ],
    ),
    "the tool that ends a turn, with wrong arguments": (
        [durable(5, calls("finish")), durable(6, fails("no", "finish"))],
        [
            Called(ITEM, "c", "finish", '{"a":1}'),
            Returned("c", "finish", "no", is_error=True),
        ],
    ),
    "a pause": ([durable(5, PauseEvent(**TIME))], [end(5, "paused")]),
    "a pause in the middle": ([durable(5, calls("add")), durable(6, PauseEvent(**TIME))], [CALLED]),
    "an error": (
        [
            delta("Some words"),
            durable(5, ConversationErrorEvent(**TIME, code="auth", detail="No key."), "5 failure"),
        ],
        [
            *(Text(ITEM, "Some "), Text(ITEM, "", last=True, whole="Some ")),
            *(Failed("auth", "No key."), end(5, "error", "auth: No key.")),
        ],
    ),
    "an interrupt": (
        [
            delta("Some words"),
            durable(5, says("Some words", llm_response_id=None, sender="interrupted"), "5 partial"),
            durable(6, InterruptEvent(**TIME)),
        ],
        [
            *(Text(ITEM, "Some "), Text(ITEM, "words", last=True, whole="Some words")),
            end(6, "idle", "interrupted by the user"),
        ],
    ),
    "too many turns of the user's": (
        [durable(5, InterruptEvent(reason="too_many_conversations", **TIME))],
        [
            Failed("too_many_conversations", TOO_MANY_CONVERSATIONS.message),
            end(5, "idle", SUSPENDED_REASON),
        ],
    ),
    "a step that is aborted": (
        [
            delta("Some words"),
            ItemAbortedFrame(item_id="5", run="run"),
            durable(5, InterruptEvent(**TIME)),
        ],
        [
            *(Text(ITEM, "Some "), Text(ITEM, "", last=True, whole="Some ")),
            end(5, "idle", "interrupted by the user"),
        ],
    ),
    "a second attempt that says the same": (
        [
            delta("Some words"),
            delta("", attempt=2),
            delta("Some words that", attempt=2),
            durable(5, says(LONG)),
        ],
        [*PIECES, LAST, end(5)],
    ),
    "a second attempt that says something else": (
        [delta("Other words"), delta("Some", attempt=2), durable(5, says(LONG))],
        [
            Text(ITEM, "Other "),
            Text(ITEM, f"\n{LONG}", last=True, final=True, whole=LONG),
            end(5),
        ],
    ),
    "a text of which the beginning is not known": (
        [delta("words that", 5), durable(5, says(LONG))],
        [*PIECES, LAST, end(5)],
    ),
    "the output of a tool": ([delta("many files", step="tool.call")], []),
    "what came before": (
        [SyncFrame(from_seq=5, through_seq=5), durable(3, says("Old."))],
        [],
    ),
    "a turn that is over": (
        [durable(5, says("Hi.")), durable(6, says("More."))],
        [whole("Hi.", final=True), end(5)],
    ),
    "another message in the middle": (
        [durable(5, calls("add")), begins(6), durable(7, returns("2"), "6")],
        [CALLED, Returned("c", "add", "2")],
    ),
    "a connection that ends": ([ErrorFrame(code="shutdown", detail="Bye.")], []),
    "a notice of a limit": ([NoticeFrame(type="error", id="X", message="Wait.")], []),
}


@pytest.mark.parametrize("name", CASES)
def test_the_parts_follow_from_the_frames(name: str) -> None:
    frames, expected = CASES[name]
    assert read(begins(), *frames) == expected


def test_an_agent_that_is_stuck_has_failed() -> None:
    stuck = StuckEvent(**TIME, pattern="repeat", first_seq=1, last_seq=3, count=3)
    [failed, ended] = read(begins(), durable(5, stuck))
    assert isinstance(failed, Failed)
    assert (failed.code, ended) == ("stuck", end(5, "stuck", "repeat: events 1 to 3"))


def test_a_question_is_what_the_agent_says_last() -> None:
    call = {"action_id": "id-c", "tool_call_id": "c"}
    question = QuestionEvent(**TIME, **call, question="Which?", choices=("red", "blue"))
    state = State(next_seq=SEQ, spec=SPEC, tool_traits=ToolTraits(suspending=("ask_user",)))
    called, returned, *_, said, ended = read(
        begins(), durable(5, calls("ask_user")), durable(6, question, "6"), state=state
    )
    assert isinstance(called, Called)
    assert returned == Returned(
        "c", "ask_user", "The user is asked; the next message is the answer."
    )
    assert isinstance(said, Text)
    assert (said.whole, said.final) == ("Which?\n1. red\n2. blue", True)
    assert ended == end(6, "waiting_for_answer")


WAITING = (
    begins(),
    durable(5, calls("add")),
    durable(6, calls("add", "", "d")),
    durable(7, updates("status", "waiting_for_confirmation"), "6"),
)


def asks(call_id: str, seq: int) -> PendingCall:
    return PendingCall(seq=seq, tool_name="add", tool_call_id=call_id, risk="UNKNOWN", asks=True)


def test_a_turn_ends_where_a_person_is_asked() -> None:
    state = State(next_seq=SEQ, spec=SPEC)
    assert read(*WAITING, state=state) == [
        replace(CALLED, approval="possible"),
        Called(ITEM, "d", "add", '{"a":1}', "possible"),
        Asked((asks("c", 5), asks("d", 6))),
        end(7, "waiting_for_confirmation"),
    ]


def test_a_turn_begins_with_answers_of_which_the_first_ones_leave_others_open() -> None:
    reader = TurnReader(State(next_seq=SEQ, spec=SPEC))
    for frame in WAITING:
        reader.take(frame)
    waiting = {5: CALLED, 6: replace(CALLED, call_id="d")}
    reader = TurnReader(reader.state, waiting)
    answers = (durable(8, rejects("no", "d"), "7"), durable(9, updates("confirmed", [5]), "8"))
    parts = [part for frame in answers for part in reader.take(frame)]
    assert [*parts, *reader.take(durable(10, returns("2"), "9"))] == [
        Called(ITEM, "d", "add", '{"a":1}', "answered"),
        Returned("d", "add", "no", is_error=True),
        replace(CALLED, approval="answered"),
        Returned("c", "add", "2"),
    ]


WORDS = st.lists(st.sampled_from(["a", "bc ", "\n", "öffnet ", "x" * 70, " "]), max_size=40)


@given(WORDS.map("".join), st.lists(st.integers(0, 400), max_size=6))
def test_a_text_has_the_same_pieces_however_it_comes(text: str, cuts: list[int]) -> None:
    ends = sorted({min(cut, len(text)) for cut in cuts})
    pairs = itertools.pairwise([0, *ends])
    grown = [delta(text[first:last], first) for first, last in pairs]
    frames: list[Frame] = [*grown, durable(5, says(text))]
    assert read(begins(), *frames) == read(begins(), frames[-1])


@given(WORDS.map("".join))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    parts = read(begins(), durable(5, says(text)))
    assert "".join(part.text for part in parts if isinstance(part, Text)) == text

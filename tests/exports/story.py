"""One log in which everything happens that an export has to decide about."""

from collections.abc import Iterable

from events.condensation import Condensation
from events.content import ImageContent, TextContent, ThinkingBlock
from events.control import InterruptEvent, StuckEvent
from events.entry import Entry, entry
from events.event import AnyEvent, event_from, fields_of
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from events.usage import Usage
from exports.format import About
from tests.builders import (
    CONVERSATION,
    ORIGIN,
    WHEN,
    action,
    agent,
    assessed,
    configured,
    error,
    failed,
    id_of,
    observation,
    opened,
    partial,
    placed,
    prompt,
    rejection,
    status,
    unknown,
    user,
)
from tests.logs import recall, told

PIXEL = "data:image/png;base64,iVBORw0KGgo="
ELSEWHERE = "https://pictures.example/cat.jpg"
CHILD = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c"
SECRET = "<secret:TOKEN>"

ABOUT = About(CONVERSATION, "finished", title="A <story> & more", model="openai/gpt-x", own=5)

CHAT = Usage(
    prompt_tokens=100, completion_tokens=20, cached_tokens=60, cost=0.25, model="openai/gpt-x"
)
CONDENSE = Usage(
    prompt_tokens=50, completion_tokens=5, cost=0.125, model="small", purpose="condense"
)
DELEGATED = Usage(
    prompt_tokens=9, completion_tokens=1, cost=0.5, model="openai/gpt-x", purpose="delegate"
)


def story() -> list[Entry]:
    """The entries; the last call has no answer."""
    return logged(_happenings())


def logged(happened: Iterable[tuple[AnyEvent, Usage | None]]) -> list[Entry]:
    told = list(happened)
    events = placed(event for event, _ in told)
    bills = (usage for _, usage in told)
    return [
        entry(seq, event, ORIGIN, usage)
        for seq, (event, usage) in enumerate(zip(events, bills, strict=True))
    ]


def _happenings() -> list[tuple[AnyEvent, Usage | None]]:
    batch = [
        thinking(action("look", "call_1", "r-1", '{"at": "a"}')),
        action("write", "call_2", "r-1", '{"text": "<b>\\u2028</b>"}', risk="HIGH"),
        action("fly", "call_3", "r-1", "{broken", valid=False),
    ]
    return [
        (opened(), None),
        (configured(), None),
        (prompt(), None),
        (with_images(user("Look at this."), PIXEL, ELSEWHERE), None),
        (recall("Use hatch.", "builds"), None),
        (batch[0], CHAT),
        (batch[1], None),
        (batch[2], None),
        (error(None, "fly", "call_3", "There is no tool 'fly'."), None),
        (assessed({id_of(6): "HIGH"}), None),
        (told("Two answers are left."), None),
        (rejection(id_of(6), "write", "call_2"), None),
        (shows(observation(id_of(5), "look", f"seen {SECRET}", "call_1"), PIXEL), None),
        (observation(id_of(5), "look", "seen late", "call_1"), None),
        (
            Condensation(
                timestamp=WHEN,
                forgotten_event_ids=(id_of(5), id_of(12)),
                summary="It looked around.",
                summary_offset=1,
            ),
            CONDENSE,
        ),
        (action("delegate", "call_1", "r-2", '{"task": "Count."}'), CHAT),
        (
            observation(id_of(15), "delegate", f"Conversation {CHILD}: finished, $0.5.", "call_1"),
            DELEGATED,
        ),
        (partial("I was about to"), None),
        (InterruptEvent(timestamp=WHEN), None),
        (unknown("HookRan", exit=1), None),
        (user("Go <on>\x1b[31m & on."), None),
        (action("look", "", "r-3"), CHAT),
        (interrupted(error(id_of(21), "look", "", "It was stopped.")), None),
        (action("look", "call_9", "r-4"), CHAT),
        (newer(observation(id_of(23), "look", "seen anew", "call_9")), None),
        (StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=3, last_seq=5, count=3), None),
        (failed("max_budget"), None),
        (status("resumed"), None),
        (agent("All <done> ❤.", "r-5"), CHAT),
        (user("Thanks. One more."), None),
        (action("write", "call_10", "r-6", '{"text": "x"}'), CHAT),
    ]


def thinking(event: ActionEvent) -> ActionEvent:
    blocks = (ThinkingBlock(thinking="Hm, where?", signature="s"),)
    thought = (TextContent(text="I look."),)
    return event.model_copy(update={"thinking_blocks": blocks, "thought": thought})


def with_images(event: MessageEvent, *urls: str) -> MessageEvent:
    said = event.llm_message
    content = (*said.content, ImageContent(image_urls=urls))
    return event.model_copy(update={"llm_message": said.model_copy(update={"content": content})})


def shows(event: ObservationEvent, url: str) -> ObservationEvent:
    seen = event.observation
    content = (*seen.content, ImageContent(image_urls=(url,)))
    return event.model_copy(update={"observation": seen.model_copy(update={"content": content})})


def interrupted(event: AgentErrorEvent) -> AgentErrorEvent:
    return event.model_copy(update={"classification": "interrupted"})


def newer(event: AnyEvent) -> AnyEvent:
    """The same, as a newer writer has it: with a field that nobody here knows."""
    return event_from({**fields_of(event), "new": 1})

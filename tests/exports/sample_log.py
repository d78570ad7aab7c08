"""A log with every case that an export distinguishes."""

from collections.abc import Iterable

from perdure.events.condensation import Condensation
from perdure.events.content import ImageContent, TextContent, ThinkingBlock
from perdure.events.control import InterruptEvent, StuckEvent
from perdure.events.entry import Entry, make_entry
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.events.usage import Usage
from perdure.exports.format import ExportMetadata
from tests.builders import (
    CONVERSATION,
    ORIGIN,
    TIMESTAMP,
    action,
    agent,
    error,
    error_event,
    id_of,
    observation,
    opened_event,
    partial_message,
    prompt,
    rejection,
    risk_analysis,
    spec_event,
    status_event,
    unknown_event,
    user,
    with_ids,
)
from tests.logs import recall_event, system_message

PIXEL = "data:image/png;base64,iVBORw0KGgo="
EXTERNAL_IMAGE = "https://pictures.example/cat.jpg"
CHILD = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c"
SECRET = "<secret:TOKEN>"

ABOUT = ExportMetadata(
    CONVERSATION, "finished", title="A <story> & more", model="openai/gpt-x", first_own_seq=5
)

CHAT = Usage(
    prompt_tokens=100, completion_tokens=20, cached_tokens=60, cost=0.25, model="openai/gpt-x"
)
CONDENSE = Usage(
    prompt_tokens=50, completion_tokens=5, cost=0.125, model="small", purpose="condense"
)
DELEGATED = Usage(
    prompt_tokens=9, completion_tokens=1, cost=0.5, model="openai/gpt-x", purpose="delegate"
)


def sample_entries() -> list[Entry]:
    """Return the entries; the last call has no answer."""
    return entries_of(_happenings())


def entries_of(happened: Iterable[tuple[AnyEvent, Usage | None]]) -> list[Entry]:
    pairs = list(happened)
    events = with_ids(event for event, _ in pairs)
    bills = (usage for _, usage in pairs)
    return [
        make_entry(seq, event, ORIGIN, usage)
        for seq, (event, usage) in enumerate(zip(events, bills, strict=True))
    ]


def _happenings() -> list[tuple[AnyEvent, Usage | None]]:
    batch = [
        with_thinking(action("look", "call_1", "r-1", '{"at": "a"}')),
        action("write", "call_2", "r-1", '{"text": "<b>\\u2028</b>"}', risk="HIGH"),
        action("fly", "call_3", "r-1", "{broken", valid=False),
    ]
    return [
        (opened_event(), None),
        (spec_event(), None),
        (prompt(), None),
        (with_images(user("Look at this."), PIXEL, EXTERNAL_IMAGE), None),
        (recall_event("Use hatch.", "builds"), None),
        (batch[0], CHAT),
        (batch[1], None),
        (batch[2], None),
        (error(None, "fly", "call_3", "There is no tool 'fly'."), None),
        (risk_analysis({id_of(6): "HIGH"}), None),
        (system_message("Two answers are left."), None),
        (rejection(id_of(6), "write", "call_2"), None),
        (with_image(observation(id_of(5), "look", f"seen {SECRET}", "call_1"), PIXEL), None),
        (observation(id_of(5), "look", "seen late", "call_1"), None),
        (
            Condensation(
                timestamp=TIMESTAMP,
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
        (partial_message("I was about to"), None),
        (InterruptEvent(timestamp=TIMESTAMP), None),
        (unknown_event("HookRan", exit=1), None),
        (user("Go <on>\x1b[31m & on."), None),
        (action("look", "", "r-3"), CHAT),
        (interrupted(error(id_of(21), "look", "", "It was stopped.")), None),
        (action("look", "call_9", "r-4"), CHAT),
        (as_newer_version(observation(id_of(23), "look", "seen anew", "call_9")), None),
        (
            StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=3, last_seq=5, count=3),
            None,
        ),
        (error_event("max_budget"), None),
        (status_event("resumed"), None),
        (agent("All <done> ❤.", "r-5"), CHAT),
        (user("Thanks. One more."), None),
        (action("write", "call_10", "r-6", '{"text": "x"}'), CHAT),
    ]


def with_thinking(event: ActionEvent) -> ActionEvent:
    blocks = (ThinkingBlock(thinking="Hm, where?", signature="s"),)
    thought = (TextContent(text="I look."),)
    return event.model_copy(update={"thinking_blocks": blocks, "thought": thought})


def with_images(event: MessageEvent, *urls: str) -> MessageEvent:
    message = event.llm_message
    content = (*message.content, ImageContent(image_urls=urls))
    return event.model_copy(update={"llm_message": message.model_copy(update={"content": content})})


def with_image(event: ObservationEvent, url: str) -> ObservationEvent:
    seen = event.observation
    content = (*seen.content, ImageContent(image_urls=(url,)))
    return event.model_copy(update={"observation": seen.model_copy(update={"content": content})})


def interrupted(event: AgentErrorEvent) -> AgentErrorEvent:
    return event.model_copy(update={"classification": "interrupted"})


def as_newer_version(event: AnyEvent) -> AnyEvent:
    """Return the event as a newer version writes it, with an unknown field."""
    return parse_event({**dump_event(event), "new": 1})

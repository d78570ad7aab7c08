"""Stories of a program with OpenHands' `RemoteConversation`, unmodified, against our gateway.

It runs in the environment of openhands-sdk: `python stories.py STORY URL KEY MODEL [NATIVE]`, and
prints what it has seen as JSON. With NATIVE the client knows the classes of OpenHands' own tools.
"""

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from openhands.sdk import LLM, Agent, Tool
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.conversation.impl.remote_conversation import RemoteConversation
from openhands.sdk.event import ActionEvent, Event, MessageEvent, ObservationEvent
from openhands.sdk.event.conversation_state import ConversationStateUpdateEvent
from openhands.sdk.event.streaming_delta import StreamingDeltaEvent
from openhands.sdk.security.confirmation_policy import AlwaysConfirm, NeverConfirm
from openhands.sdk.workspace import RemoteWorkspace

STORY, URL, KEY, MODEL = sys.argv[1:5]
CANARY = "sk-canary-violet-4711"

Seen = dict[str, Any]


def make_agent(stream: bool = False) -> Agent:
    llm = LLM(model=MODEL, api_key=CANARY, usage_id="agent", stream=stream)
    return Agent(llm=llm, tools=[Tool(name="terminal"), Tool(name="file_editor")])


def workspace(key: str = KEY) -> RemoteWorkspace:
    return RemoteWorkspace(host=URL, api_key=key, working_dir="workspace")


def open_conversation(agent: Agent | None = None, **more: Any) -> RemoteConversation:
    more.setdefault("visualizer", None)
    return RemoteConversation(agent=agent or make_agent(), workspace=workspace(), **more)


def status_of(conversation: RemoteConversation) -> str:
    return str(conversation.state.execution_status.value)


def kinds_of(events: Any) -> list[str]:
    passing = (ConversationStateUpdateEvent, StreamingDeltaEvent)
    return [type(event).__name__ for event in events if not isinstance(event, passing)]


def texts_of(events: Any) -> list[str]:
    messages = (event for event in events if isinstance(event, MessageEvent))
    return [" ".join(part.text for part in item.llm_message.content) for item in messages]


def tell_turn() -> Seen:
    """A turn with tools: what the callbacks, the list of events and the state have."""
    heard: list[Event] = []
    conversation = open_conversation(callbacks=[heard.append], max_iteration_per_run=7)
    before = status_of(conversation)
    conversation.send_message("Write the plan.")
    time.sleep(0.3)
    recorded = conversation.state.refresh_from_server()["execution_status"]
    conversation.run(timeout=60)
    events = conversation.state.events
    shown = json.dumps(conversation.state.model_dump())
    actions = [event.action for event in events if isinstance(event, ActionEvent)]
    results = [event.observation for event in events if isinstance(event, ObservationEvent)]
    return {
        "id": str(conversation.id),
        "before": before,
        "recorded": recorded,
        "after": status_of(conversation),
        "kinds": kinds_of(events),
        "heard": kinds_of(heard),
        "texts": texts_of(events),
        "actions": [type(action).__name__ for action in actions],
        "results": [type(result).__name__ for result in results],
        "iterations": conversation.state.model_dump()["max_iterations"],
        "tokens": conversation.conversation_stats.usage_to_metrics[
            "agent"
        ].accumulated_token_usage.prompt_tokens,
        "has_key": CANARY in shown,
    }


def tell_attachment() -> Seen:
    """A second turn by who attaches to a conversation, with the agent that it has there."""
    first = open_conversation(tags={"team": "red"})
    first.send_message("One.")
    first.run(timeout=60)
    again = RemoteConversation.attach(workspace(), first.id, visualizer=None)
    known = texts_of(again.state.events)
    again.send_message("Two.")
    again.run(timeout=60)
    return {
        "known": known,
        "texts": texts_of(again.state.events),
        "model": again.agent.llm.model,
        "key": again.agent.llm.api_key is None,
        "tags": again.state.model_dump()["tags"],
        "first": texts_of(first.state.events),
    }


def tell_confirmation() -> Seen:
    """Calls that wait: rejected, then accepted by running on."""
    conversation = open_conversation()
    conversation.set_confirmation_policy(AlwaysConfirm())
    conversation.send_message("Go.")
    conversation.run(timeout=60)
    waiting = status_of(conversation)
    conversation.reject_pending_actions("Not so.")
    time.sleep(0.5)
    rejected = conversation.state.refresh_from_server()["execution_status"]
    conversation.run(timeout=60)
    waiting_again = status_of(conversation)
    conversation.run(timeout=60)
    policy = type(conversation.state.confirmation_policy).__name__
    conversation.set_confirmation_policy(NeverConfirm())
    return {
        "waiting": waiting,
        "rejected": rejected,
        "waiting_again": waiting_again,
        "after": status_of(conversation),
        "policy": policy,
        "kinds": kinds_of(conversation.state.events),
    }


def tell_pause() -> Seen:
    """A turn that is paused and goes on, and one that is interrupted."""
    conversation = open_conversation()
    conversation.send_message("Slowly.")
    conversation.run(blocking=False)
    time.sleep(0.5)
    conversation.pause()
    paused = _wait(conversation, "paused")
    conversation.run(timeout=60)
    after = status_of(conversation)
    conversation.send_message("Very slowly.")
    conversation.run(blocking=False)
    time.sleep(1.0)
    began = time.monotonic()
    conversation.interrupt()
    took = time.monotonic() - began
    return {
        "paused": paused,
        "after": after,
        "interrupted": _wait(conversation, "paused"),
        "soon": took < 20,
    }


def _wait(conversation: RemoteConversation, wanted: str) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        shown = conversation.state.refresh_from_server()["execution_status"]
        if shown == wanted:
            break
        time.sleep(0.1)
    return str(shown)


def tell_fork() -> Seen:
    """A fork, a question beside the conversation, a title, and its end."""
    conversation = open_conversation()
    conversation.send_message("One.")
    conversation.run(timeout=60)
    conversation.set_title("A plan")
    fork = conversation.fork(title="Another plan", tags={"kind": "fork"})
    fork.send_message("Two.")
    fork.run(timeout=60)
    answer = conversation.ask_agent("How many?")
    first = next(e for e in conversation.state.events if isinstance(e, MessageEvent))
    early = conversation.fork(from_event_id=first.id, conversation_id=uuid.uuid4())
    info = conversation.state.refresh_from_server()
    forked = fork.state.refresh_from_server()
    conversation.delete_on_close = True
    conversation.close()
    response = fork.workspace.client.get(f"/api/conversations/{conversation.id}")
    return {
        "title": info["title"],
        "forked": [forked["title"], forked["tags"], forked["forked_from_conversation_id"]],
        "id": str(conversation.id),
        "texts": texts_of(conversation.state.events),
        "fork_texts": texts_of(fork.state.events),
        "early_texts": texts_of(early.state.events),
        "answer": answer,
        "deleted": response.status_code,
    }


def tell_stream() -> Seen:
    """Words as they come: all that is sent together is the text."""
    pieces: list[str] = []

    def take(chunk: Any) -> None:
        pieces.append(chunk.choices[0].delta.content or "")

    conversation = open_conversation(make_agent(stream=True), token_callbacks=[take])
    conversation.send_message("Tell.")
    conversation.run(timeout=60)
    return {
        "pieces": len(pieces),
        "text": "".join(pieces),
        "texts": texts_of(conversation.state.events),
    }


def tell_error() -> Seen:
    """A run that ends with an error, and one that goes on after it."""
    conversation = open_conversation()
    conversation.send_message("Fail.")
    try:
        conversation.run(timeout=60)
    except ConversationRunError as error:
        found = error.conversation_error
        return {"code": found.code if found else None, "status": status_of(conversation)}
    return {"code": "none", "status": status_of(conversation)}


def tell_many_turns() -> Seen:
    """Ten turns in a row, each waited for: none hangs, nothing is heard twice."""
    heard: list[str] = []
    conversation = open_conversation(callbacks=[lambda event: heard.append(event.id)])
    took = []
    for nth in range(10):
        conversation.send_message(f"Turn {nth}.")
        began = time.monotonic()
        conversation.run(timeout=60)
        took.append(time.monotonic() - began)
    return {
        "texts": texts_of(conversation.state.events),
        "twice": len(heard) - len(set(heard)),
        "longest": max(took),
        "threads": threading.active_count(),
    }


STORIES: dict[str, Callable[[], Seen]] = {
    name.removeprefix("tell_"): story
    for name, story in list(globals().items())
    if name.startswith("tell_")
}

if __name__ == "__main__":
    if "NATIVE" in sys.argv[5:]:
        import openhands.tools.file_editor
        import openhands.tools.terminal  # noqa: F401
    print("SEEN " + json.dumps(STORIES[STORY]()), flush=True)

    os._exit(0)  # closing a conversation takes five seconds

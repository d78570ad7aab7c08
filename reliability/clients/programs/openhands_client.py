"""`openhands_client.py URL KEY SECONDS SEED`: conversations with OpenHands' `RemoteConversation`.

Its messages have no ids: one whose answer is lost is sent again unless the list of events has it,
so that it may be there twice. All else is told by the client's own list of events.
"""

import json
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from openhands.sdk import LLM, Agent, Tool
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.conversation.impl.remote_conversation import RemoteConversation
from openhands.sdk.event import MessageEvent
from openhands.sdk.event.conversation_state import ConversationStateUpdateEvent
from openhands.sdk.event.streaming_delta import StreamingDeltaEvent
from openhands.sdk.workspace import RemoteWorkspace

URL, KEY, SECONDS, SEED = sys.argv[1:5]
HOST = f"{URL}/openhands"

TURNS = 3
MODELS = [f"openai/following-{number}" for number in range(8)]
PAUSE = 0.3
LOOKS = 4
TURN_TIMEOUT = 200.0
TOOLS = ("reliability.chaos.tools:TOOLS", "file_editor")

T = TypeVar("T")


class Talk:
    """A conversation, and its account."""

    def __init__(self, chance: random.Random) -> None:
        self.id = str(uuid.uuid4())
        self.model = chance.choice(MODELS)
        self.sent: dict[str, int] = {}
        self.answers: list[str] = []
        self.faults: list[str] = []
        self.repeats = 0
        self.heard: list[str] = []

    def run(self) -> None:
        conversation = self.repeat(self.open)
        for number in range(TURNS):
            text = f"Message {number} of {self.id}."
            self.say(conversation, text)
            self.repeat(lambda: conversation.run(timeout=TURN_TIMEOUT))
            self.answers.append(self.last_answer(conversation))
        self.check_events(conversation)

    def open(self) -> RemoteConversation:
        """Start the conversation, or attach to it where an earlier try has started it."""
        llm = LLM(model=self.model, usage_id="agent")
        agent = Agent(llm=llm, tools=[Tool(name=name) for name in TOOLS])
        workspace = RemoteWorkspace(host=HOST, api_key=KEY, working_dir="workspace")
        return RemoteConversation(
            agent=agent,
            workspace=workspace,
            conversation_id=uuid.UUID(self.id),
            callbacks=[lambda event: self.heard.append(event.id)],
            visualizer=None,
        )

    def say(self, conversation: RemoteConversation, text: str) -> None:
        """Send a message until the client knows that it is there."""
        self.sent[text] = 0
        while True:
            try:
                self.sent[text] += 1
                conversation.send_message(text)
                return
            except httpx.HTTPError:
                self.repeats += 1
                time.sleep(PAUSE)
            if self.repeat(lambda: self.is_there(text)):
                return

    def is_there(self, text: str) -> bool:
        return any(text in each for each in self.texts(self.fetch_events(), "user"))

    def fetch_events(self) -> list[Any]:
        """Read all events anew, by pages, as a client that attaches does."""
        workspace = RemoteWorkspace(host=HOST, api_key=KEY, working_dir="workspace")
        attached = RemoteConversation.attach(workspace, uuid.UUID(self.id), visualizer=None)
        return list(attached.state.events)

    def texts(self, events: list[Any], source: str) -> list[str]:
        messages = (event for event in events if isinstance(event, MessageEvent))
        return [
            "".join(part.text for part in event.llm_message.content)
            for event in messages
            if event.source == source
        ]

    def last_answer(self, conversation: RemoteConversation) -> str:
        self.repeat(conversation.state.events.reconcile)
        return self.texts(list(conversation.state.events), "agent")[-1]

    def check_events(self, conversation: RemoteConversation) -> None:
        """Compare what the client has kept through all kills with what is there.

        A lost worker's late result may come between the two looks: both are taken again.
        """
        for _ in range(LOOKS):
            self.repeat(conversation.state.events.reconcile)
            kept = ids_of(conversation.state.events)
            there = ids_of(self.repeat(self.fetch_events))
            if kept == there:
                break
        else:
            other = sorted(set(kept) ^ set(there))
            self.faults.append(
                f"the client has {len(kept)} events of {len(there)}, but for {other}"
            )
        if len(self.heard) != len(set(self.heard)):
            self.faults.append("an event was heard twice")

    def repeat(self, request: Callable[[], T]) -> T:
        """Make a request until it is answered; what is refused for good is raised."""
        while True:
            try:
                return request()
            except (httpx.HTTPError, ConversationRunError) as error:
                cause = error.__cause__ if isinstance(error, ConversationRunError) else error
                if not is_passing(cause):
                    raise
            self.repeats += 1
            time.sleep(PAUSE)


def ids_of(events: Any) -> list[str]:
    """List the ids of what stands in the log: states and pieces of texts come by sockets alone."""
    passing = (ConversationStateUpdateEvent, StreamingDeltaEvent)
    return [str(event.id) for event in events if not isinstance(event, passing)]


def is_passing(cause: BaseException | None) -> bool:
    """Tell whether a request failed for a gateway that was killed, or what it needs."""
    if isinstance(cause, httpx.HTTPStatusError):
        return cause.response.status_code >= 500
    return isinstance(cause, httpx.HTTPError)


def main() -> None:
    end, chance = time.monotonic() + float(SECONDS), random.Random(f"openhands {SEED}")
    while time.monotonic() < end:
        talk = Talk(chance)
        try:
            talk.run()
        except Exception as error:
            print(f"FINDING {talk.id}: {error!r}".replace("\n", " "), flush=True)
            continue
        fields = ("id", "sent", "answers", "repeats", "faults")
        print("ACCOUNT " + json.dumps({name: getattr(talk, name) for name in fields}), flush=True)
    os._exit(0)  # closing a conversation takes five seconds


if __name__ == "__main__":
    main()

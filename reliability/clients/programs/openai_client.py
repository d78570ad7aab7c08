"""`openai_client.py URL KEY SECONDS SEED`: conversations with OpenAI's client, through a gateway.

Each request has an idempotency key, and is made again under it until it is answered; a stream that
breaks is gone on with behind its last event, as OpenAI's documentation says.
"""

import json
import random
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import httpx
from openai import APIConnectionError, APIStatusError, OpenAI
from openai.types.responses import Response

URL, KEY, SECONDS, SEED = sys.argv[1:5]

TURNS = 3
AGENTS = [f"following-{number}" for number in range(8)]
PAUSE = 0.3
ENDED = ("completed", "failed", "incomplete", "cancelled")

T = TypeVar("T")

LOST = (APIConnectionError, httpx.TransportError)
"""Errors of a connection whose gateway was killed."""


class Talk:
    """A conversation, and its account."""

    def __init__(self, client: OpenAI, chance: random.Random) -> None:
        self.client, self.chance = client, chance
        self.agent = chance.choice(AGENTS)
        self.id = str(uuid.uuid4())
        self.previous: str | None = None
        self.history: list[Any] = []
        self.sent: dict[str, int] = {}
        self.answers: list[str] = []
        self.faults: list[str] = []
        self.repeats = 0

    def run(self) -> None:
        """Have some turns, each in another way."""
        begin = self.chance.choice([self.chat, self.respond])
        for number in range(TURNS):
            text = f"Message {number} of {self.id}."
            self.sent[text] = 1
            begin(text)

    def chat(self, text: str) -> None:
        """Have a turn by a chat completion of the conversation of this name."""
        headers = {"X-Conversation-Id": self.id, "Idempotency-Key": str(uuid.uuid4())}
        self.history.append({"role": "user", "content": text})
        raw = self.repeat(
            lambda: self.client.chat.completions.with_raw_response.create(
                model=self.agent, messages=self.history, extra_headers=headers
            )
        )
        if (name := raw.headers["X-Conversation-Id"]) != self.id:
            self.faults.append(f"the chat goes on in {name}")
        whole = raw.parse().choices[0].message.content or ""
        self.history.append({"role": "assistant", "content": whole})
        self.answers.append(whole.rpartition("\n\n")[2])

    def respond(self, text: str) -> None:
        """Have a turn by a response: streamed, waited for, or in the background."""
        ways = [self.stream, self.wait, self.poll]
        key = {"Idempotency-Key": str(uuid.uuid4())}
        response = self.chance.choice(ways)(text, key)
        self.previous, self.id = response.id, conversation_id(response)
        if response.status != "completed":
            self.faults.append(f"{response.id} ends {response.status}: {response.error}")
        messages = [item for item in response.output if item.type == "message"]
        if messages:
            last = messages[-1].content[-1]
            self.answers.append(last.text if last.type == "output_text" else "")

    def wait(self, text: str, key: dict[str, str]) -> Response:
        response: Response = self.create(text, key)
        return response

    def poll(self, text: str, key: dict[str, str]) -> Response:
        response: Response = self.create(text, key, background=True)
        while response.status not in ENDED:
            time.sleep(PAUSE)
            retrieve = partial(self.client.responses.retrieve, response.id)
            response = self.repeat(retrieve)
        return response

    def stream(self, text: str, key: dict[str, str]) -> Response:
        """Follow a stream to its end, over several connections where it breaks."""
        last, name = -1, None
        while True:
            try:
                events = self.open(text, key) if name is None else self.resume(name, last)
                for event in events:
                    if event.sequence_number != last + 1:
                        self.faults.append(f"event {event.sequence_number} came behind {last}")
                    last = event.sequence_number
                    if event.type == "response.created":
                        name = event.response.id
                    if event.type in ("response.completed", "response.failed"):
                        response: Response = event.response
                        return response
            except LOST:
                pass
            if name is None:
                last = -1
            self.repeats += 1
            time.sleep(PAUSE)

    def open(self, text: str, key: dict[str, str]) -> Any:
        return self.create(text, key, stream=True)

    def resume(self, name: str, last: int) -> Any:
        return self.repeat(
            lambda: self.client.responses.retrieve(name, stream=True, starting_after=last)
        )

    def create(self, text: str, key: dict[str, str], **more: Any) -> Any:
        return self.repeat(
            lambda: self.client.responses.create(
                model=self.agent,
                input=text,
                previous_response_id=self.previous,
                extra_headers=key,
                **more,
            )
        )

    def repeat(self, request: Callable[[], T]) -> T:
        """Make a request until it is answered; what is refused for good is raised."""
        while True:
            try:
                return request()
            except LOST:
                pass
            except APIStatusError as error:
                if error.status_code < 500:
                    raise
            self.repeats += 1
            time.sleep(PAUSE)


def conversation_id(response: Response) -> str:
    assert response.conversation is not None
    return str(uuid.UUID(response.conversation.id.removeprefix("conv_")))


def main() -> None:
    end, chance = time.monotonic() + float(SECONDS), random.Random(f"openai {SEED}")
    client = OpenAI(base_url=f"{URL}/openai/v1", api_key=KEY, max_retries=2, timeout=60)
    while time.monotonic() < end:
        talk = Talk(client, chance)
        try:
            talk.run()
        except Exception as error:
            print(f"FINDING {talk.id}: {error!r}".replace("\n", " "), flush=True)
            continue
        fields = ("id", "sent", "answers", "repeats", "faults")
        print("ACCOUNT " + json.dumps({name: getattr(talk, name) for name in fields}), flush=True)


if __name__ == "__main__":
    main()

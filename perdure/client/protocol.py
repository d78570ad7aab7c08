"""The interface of a client for programs and commands, connected to Temporal or to a gateway."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from perdure.agent.loop.ask import AskResponse
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, RecordedSignal
from perdure.agent.loop.state import State
from perdure.agent.loop.status import Status
from perdure.agent.spec import Agent
from perdure.api.conversations import Conversation as Description
from perdure.api.conversations import Page
from perdure.api.secrets import Secret
from perdure.client.events.event_list import EventList
from perdure.client.file_change import Changes
from perdure.client.fork_handle import Fork
from perdure.client.images import Image
from perdure.client.recording import RecordedEvents
from perdure.client.running_step import RunningStep
from perdure.client.trouble import Trouble
from perdure.client.turn import TurnResult
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.storage.grants import Access, Grant
from perdure.storage.log.readable import ReadableLog
from perdure.storage.noted_values import SessionValues
from perdure.storage.shared import Shared


class ConversationHandle(Protocol):
    """A conversation, as `Conversation` and `HttpConversation` have it; they say what each does."""

    @property
    def id(self) -> str: ...
    @property
    def log(self) -> ReadableLog: ...
    @property
    def event_log(self) -> EventList: ...

    async def start(
        self,
        text: str | None,
        spec: Agent,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
        replay: RecordedEvents | None = None,
    ) -> None: ...
    async def send(
        self,
        text: str,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> None: ...
    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        max_wait: float = ...,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> RecordedMessage: ...

    async def state(self) -> State: ...
    async def status(self) -> ConversationStatus: ...
    async def diagnose(self) -> Trouble | None: ...
    async def exists(self) -> bool: ...
    async def values(self) -> dict[str, Any]: ...
    async def read_values(self) -> SessionValues: ...
    async def changes(self, after: int = -1) -> Changes: ...
    async def require_open(self) -> State: ...

    def events(self, after: int = -1) -> AsyncIterator[Entry]: ...
    def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]: ...
    def statuses(self) -> AsyncIterator[ConversationStateUpdateEvent]: ...
    def turn(self) -> AsyncIterator[AnyEvent]: ...
    def text(self) -> AsyncIterator[str]: ...
    async def result(self) -> TurnResult: ...
    async def wait_for_turn(self, message_id: str | None = None, after: int = -1) -> State: ...

    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    async def interrupt(self) -> None: ...
    async def condense(self) -> None: ...
    async def close(self) -> None: ...
    async def delete(self) -> None: ...
    async def describe(self, with_state: bool = True) -> Description: ...
    async def respond(
        self,
        accept: bool,
        calls: Sequence[str] = (),
        through: int | None = None,
        reason: str = "",
        run: bool = True,
    ) -> list[str]: ...
    async def signal(
        self, name: str, data: Any = None, signal_id: str | None = None
    ) -> RecordedSignal: ...
    async def answer(
        self, text: str | None = None, choice: str | None = None, call: str | None = None
    ) -> str: ...
    async def configure(self, changes: Mapping[str, Any]) -> RecordedMessage: ...
    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None: ...

    async def grant(self, user_id: str, access: Access = "read") -> None: ...
    async def revoke(self, user_id: str) -> None: ...
    async def grants(self) -> list[Grant]: ...


class ConversationClient(Protocol):
    """The client of one user, as `Client` and `HttpClient` are; they say what each method does."""

    @property
    def user_id(self) -> str: ...

    async def start(
        self,
        text: str | None,
        spec: Agent | Mapping[str, Any] | str,
        conversation_id: str | None = None,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
        replay: RecordedEvents | None = None,
    ) -> ConversationHandle: ...
    def conversation(
        self, conversation_id: str, owner: str | None = None
    ) -> ConversationHandle: ...
    async def list_conversations(self, limit: int = 20) -> list[str]: ...
    async def find_conversations(
        self,
        limit: int = 50,
        cursor: str | None = None,
        *,
        app: str | None = None,
        status: Status | None = None,
        agent: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        active: bool = False,
        hidden: bool = False,
    ) -> Page: ...
    async def list_shared(self, limit: int = 20) -> list[Shared]: ...
    async def fork(
        self,
        conversation_id: str,
        at: int | None = None,
        model: str | None = None,
        owner: str | None = None,
    ) -> Fork[ConversationHandle]: ...
    async def ask(
        self,
        conversation_id: str,
        question: str,
        max_wait: float | None = None,
        owner: str | None = None,
    ) -> AskResponse: ...
    async def put_secret(self, name: str, value: str, description: str = "") -> None: ...
    async def list_secrets(self) -> list[Secret]: ...
    async def remove_secret(self, name: str) -> None: ...
    async def close(self) -> None: ...

"""The chat that both front ends share: its conversation, its agent and what they print."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.phase import find_phase
from perdure.agent.loop.state import ASKING_STATUSES, State
from perdure.agent.spec import Agent
from perdure.cli.chat.attachments import Draft, attach_files
from perdure.cli.environment import Environment
from perdure.cli.follow import exit_code_of
from perdure.cli.output import note
from perdure.cli.questions import find_choice
from perdure.cli.rendering.chat import ChatPrinter
from perdure.cli.workspaces import find_own_folder
from perdure.client.ids import new_message_id
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.client.turn import is_turn_over
from perdure.errors import Conflict, Invalid
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.operations.error_reports import EXIT_OK, report_error
from perdure.storage.log.state import read_state_at


@dataclass
class Chat(ABC):
    """A conversation with a person.

    `spec` is the agent until the conversation has begun, and None from then on. `state` is that of
    the events which were printed; `exit_code` is that of the last turn.
    """

    client: ConversationClient
    conversation: ConversationHandle
    environment: Environment
    spec: Agent | None
    script: Path | None = None
    attached: Draft = field(default_factory=Draft)
    """The images of the first message that is sent from here, without its text."""
    replay: Sequence[Mapping[str, Any]] | None = None
    """Recorded events whose answers come before those of the model."""
    printer: ChatPrinter = field(default_factory=ChatPrinter)
    state: State = field(default_factory=State)
    exit_code: int = EXIT_OK
    listed: tuple[str, ...] = ()
    """The conversations that /resume listed last, to be chosen by their number."""
    interactive: ClassVar[bool]
    """Whether a person at a terminal is asked for what may be left out."""

    @abstractmethod
    async def run(self) -> int:
        """Run the chat to its end, and return the exit code."""

    @abstractmethod
    async def follow_turn(self, message_id: str | None = None) -> None:
        """Show the turn of a message, or the one that runs."""

    @abstractmethod
    async def ask(self, question: str) -> str | None:
        """Return the answer to a question; None at the end of the input."""

    @abstractmethod
    async def open(self, conversation: ConversationHandle, after: int) -> None:
        """Go on with a conversation that has begun, and show what comes after a slot."""

    @abstractmethod
    async def edit(self, text: str, in_editor: bool = False) -> None:
        """Put a text into the input line, and open that in the person's editor."""

    @abstractmethod
    def leave(self) -> None:
        """End the chat; a turn at work goes on."""

    @property
    def agent(self) -> Agent | None:
        """The agent in force, if it is known by now."""
        return self.spec or self.state.spec

    @property
    def workspace(self) -> Path | None:
        """The folder in which the agent works, if it is on this machine."""
        if self.agent is not None and self.agent.workspace:
            return Path(self.agent.workspace)
        if self.environment.stack_info is None:
            return None
        log = self.conversation.log
        return find_own_folder(self.environment.settings, log.conversation_id, log.user_id)

    @property
    def at_work(self) -> bool:
        """Tell whether a turn is at work, as far as its events were read."""
        return self.state.next_seq > 0 and not is_turn_over(self.state)

    def require_begun(self) -> ConversationHandle:
        """Return the conversation. Raises Conflict before its first message."""
        if self.spec is not None:
            raise Conflict("The conversation begins with your first message.")
        return self.conversation

    def require_rest(self, purpose: str) -> ConversationHandle:
        """Return the conversation. Raises Conflict while a turn is at work, too."""
        conversation = self.require_begun()
        if self.at_work:
            raise Conflict(f"A turn is at work: {purpose} when it has ended, or stop it by ^C.")
        return conversation

    async def send(self, text: str, message_id: str | None = None) -> str:
        """Send a message with the files that it names, and return its id."""
        draft = self.attached + attach_files(text, self.workspace)
        for remark in draft.remarks:
            note(remark)
        message_id = message_id or new_message_id()
        self.printer.own_message_ids.add(message_id)
        await self._send(draft, message_id)
        self.attached = Draft()
        return message_id

    async def answer_question(self, text: str) -> bool:
        """Answer the question that waits, by a number or in words; tell whether one did.

        A message answers it as well, and may bring images.
        """
        wait = self.state.wait
        if self.state.status != "waiting_for_answer" or wait is None or self.attached != Draft():
            return False
        choice = find_choice(text, wait.choices)
        try:
            await self.conversation.answer(None if choice else text, choice, wait.tool_call_id)
        except (Invalid, Conflict):  # somebody else has answered it
            return False
        return True

    async def _send(self, draft: Draft, message_id: str) -> None:
        if self.spec is None:
            await self.conversation.send(draft.text, message_id, draft.images)
            return
        self.conversation = await self.client.start(
            draft.text,
            self.spec,
            self.conversation.id,
            message_id,
            draft.images,
            replay=self.replay,
        )
        self.spec = None

    async def rewind(self, conversation: ConversationHandle, after: int) -> None:
        """Take up a conversation whose events up to a slot need not be shown."""
        self.state = await read_state_at(conversation.log, after + 1)
        self.conversation, self.spec = conversation, None
        self.printer = ChatPrinter(last_seq=after)

    def take(self, entry: Entry) -> None:
        """Take an entry of the log up, and print it."""
        self.state = fold(self.state, [summarize(entry)])
        self.printer.print_event(entry)

    def note_end(self) -> None:
        """Note how the turn ended, where that is not plain from its events."""
        state = self.state
        self.exit_code = exit_code_of(state)
        phase = find_phase(state)
        plain = ("finished", "error", *(ASKING_STATUSES if self.interactive else ()))
        if phase == "rejected":  # its reason is its answer
            note(phase)
        elif state.status not in plain:
            note(f"{phase}{f': {state.reason}' if state.reason else ''}")

    def report(self, error: Exception) -> None:
        """Print an expected error, which becomes the exit code."""
        failure = report_error(error)
        note(f"{failure.message} {failure.hint}".rstrip(), "red")
        self.exit_code = failure.exit_code

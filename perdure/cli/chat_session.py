"""The session of `perdure chat`: lines and messages in, events and approval prompts out."""

import asyncio
import contextlib
import sys
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import readline  # noqa: F401 isort: skip - gives input() its editing and its history

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.cli.environment import Environment
from perdure.cli.follow import (
    TurnView,
    calls_awaiting_approval,
    describe_pending_call,
    exit_code_of,
    follow,
    note_pending_calls,
    note_start,
)
from perdure.cli.output import note, show
from perdure.cli.rendering.chat import ChatPrinter
from perdure.client.conversation import Conversation
from perdure.client.ids import new_message_id
from perdure.errors import Invalid
from perdure.events.projection import summarize
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS, report_error

APPROVAL_PROMPT = "  Allow it? y, n, or why not: "

SECOND_INTERRUPT_WITHIN = 2.0
"""Seconds in which a second ^C leaves the conversation."""


class Keyboard:
    """The lines of stdin; prompts are shown where it is `interactive`."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()

    async def read_line(self, prompt: str) -> str | None:
        """Read the next line, without its newline; None at the end of the input.

        A thread reads it, since `input` cannot be cancelled; the thread stays behind if we are.
        """
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str | None] = loop.create_future()

        def read() -> None:
            text = None
            with contextlib.suppress(EOFError):
                text = input(prompt if self.interactive else "")
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_set_result, line, text)

        threading.Thread(target=read, daemon=True).start()
        return await line

    def discard_typeahead(self) -> None:
        """Drop what was typed before a question was asked: it is not the answer."""
        if self.interactive:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextlib.contextmanager
def preserve_terminal_modes() -> Iterator[None]:
    """Restore the terminal's modes at the end, also where a line was being edited."""
    if not sys.stdin.isatty():
        yield
        return
    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _set_result(line: asyncio.Future[str | None], text: str | None) -> None:
    if not line.done():
        line.set_result(text)


@dataclass
class Chat:
    """A conversation at the terminal.

    `spec` is None once the conversation has begun; `exit_code` is that of the last turn.
    """

    conversation: Conversation
    spec: Agent | None
    environment: Environment
    keyboard: Keyboard = field(default_factory=Keyboard)
    printer: ChatPrinter = field(default_factory=ChatPrinter)
    exit_code: int = EXIT_OK
    _following: bool = False
    _last_interrupt: float = float("-inf")
    _interrupt_task: asyncio.Task[None] | None = None

    async def catch_up(self) -> None:
        """Show the newest exchange, and answer what it waits for."""
        state = await self.conversation.require_open()
        self.printer.last_seq = max(-1, state.last_user_seq - 1)
        async for entry in self.conversation.log.tail(self.printer.last_seq, is_idle=_stop_at_end):
            state = fold(state, [summarize(entry)])
            self.printer.print_event(entry)
        if state.status == "running":
            await self.follow_turn()
        else:
            await self._settle_turn(state)

    async def send(self, text: str) -> None:
        """Send a message and follow its turn."""
        message_id = new_message_id()
        self.printer.own_message_ids.add(message_id)
        if self.spec is None:
            await self.conversation.send(text, message_id)
        else:
            await self.conversation.start(text, self.spec, message_id)
            workspace = self.spec.workspace
            self.spec = None
            note_start(self.conversation, self.environment, workspace)
        await self.follow_turn(message_id)

    async def follow_turn(self, message_id: str | None = None) -> None:
        """Show a turn to its end: the turn of a message, or the one that runs."""
        await self._settle_turn(await self._follow(message_id))

    async def _settle_turn(self, state: State) -> None:
        """Ask for approvals until the turn ends or no more answers come; note how it ended."""
        while state.status == "waiting_for_confirmation" and await self._ask_approvals():
            state = await self._follow(None)
        self.exit_code = exit_code_of(state)
        if state.status not in ("finished", "error"):
            note(f"{state.status}{f': {state.reason}' if state.reason else ''}")
            note_pending_calls(self.conversation.id, state)

    async def _follow(self, message_id: str | None) -> State:
        self._following = True
        try:
            last, show_event = self.printer.last_seq, self.printer.print_event
            return await follow(
                self.conversation, message_id, last, TurnView(), show_event=show_event
            )
        finally:
            self._following = False

    async def _ask_approvals(self) -> bool:
        """Ask about each action that waits; false at the end of the input."""
        self.keyboard.discard_typeahead()
        for call in calls_awaiting_approval(await self.conversation.status()):
            show(f"  ? {call.risk} risk  {await describe_pending_call(self.conversation, call)}")
            answer = await self._read_answer()
            if answer is None:
                return False
            accept = answer.lower() in ("y", "yes")
            reason = "" if answer.lower() in ("n", "no") else answer
            try:
                await self.conversation.respond(accept, [call.tool_call_id], reason=reason)
            except Invalid as error:  # somebody else has answered it
                note(str(error))
        return True

    async def _read_answer(self) -> str | None:
        while (answer := await self.keyboard.read_line(APPROVAL_PROMPT)) is not None:
            if answer.strip():
                return answer.strip()
        return None

    def handle_interrupt(self, work: asyncio.Future[int], now: float) -> None:
        """Interrupt the turn at ^C; cancel `work` at the second one, or at a prompt."""
        if not self._following or now - self._last_interrupt < SECOND_INTERRUPT_WITHIN:
            work.cancel()
            return
        self._last_interrupt = now
        self._interrupt_task = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        show("  Interrupting. ^C once more leaves the conversation, which goes on.")
        try:
            await self.conversation.interrupt()
        except EXPECTED_ERRORS as error:
            show(report_error(error).message)


async def _stop_at_end() -> bool:
    return True

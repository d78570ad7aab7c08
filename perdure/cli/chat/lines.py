"""The chat without a terminal: each line of stdin is a message, a command or an answer."""

import asyncio
import contextlib
import signal
import sys
import threading
from dataclasses import dataclass
from typing import ClassVar

from perdure.agent.loop.state import State
from perdure.cli.chat.approvals import ask_approvals
from perdure.cli.chat.chat import Chat
from perdure.cli.chat.leaving import describe_leaving
from perdure.cli.chat.slash_commands import run_slash_command
from perdure.cli.follow import TurnView, follow, note_pending_calls, note_start
from perdure.cli.output import note, show
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS

SECOND_INTERRUPT_WITHIN = 2.0
"""Seconds in which a second ^C leaves the conversation."""


PROMPT = "> "


async def read_line(prompt: str) -> str | None:
    """Read the next line of stdin, without its newline; None at the end.

    The prompt is shown on a terminal that can do no more than this, such as TERM=dumb.

    A thread reads it, since a read cannot be cancelled; the thread stays behind if we are.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def finish(text: str | None) -> None:
        if not line.done():
            line.set_result(text)

    def read() -> None:
        text = None
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = sys.stdin.readline() or None
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, text)

    if sys.stdin.isatty() and sys.stdout.isatty():
        print(prompt, end="", flush=True)
    threading.Thread(target=read, daemon=True).start()
    text = await line
    return None if text is None else text.rstrip("\n")


@dataclass
class LineChat(Chat):
    """A chat in which every turn is shown to its end before the next line is read."""

    interactive: ClassVar[bool] = False
    following: bool = False
    interrupted: bool = False
    """Whether this turn was interrupted from here."""
    _left_at_work: bool = False
    ended: bool = False
    _last_interrupt: float = float("-inf")
    _interrupt_task: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Run the chat until ^C or the end of its input, and return the exit code."""
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._process_lines())
        loop.add_signal_handler(signal.SIGINT, lambda: self._handle_interrupt(work, loop.time()))
        try:
            await asyncio.wait({work})
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            abandoned = work.cancel() or work.cancelled()
        if abandoned:
            at_work = self._left_at_work
            note(describe_leaving(self, at_work, at_work and self.interrupted))
            return EXIT_OK
        return work.result()

    async def _process_lines(self) -> int:
        """Process lines up to the last, or `/quit`; return the exit code of the last turn."""
        if self.spec is None:
            newest = await self.conversation.require_open()
            await self.open(self.conversation, max(-1, newest.last_user_seq - 1))
        while not self.ended and (line := await read_line(PROMPT)) is not None:
            try:
                await self._process_line(line.strip())
            except EXPECTED_ERRORS as error:
                self.report(error)
        return self.exit_code

    async def _process_line(self, text: str) -> None:
        if text.startswith("/"):
            await run_slash_command(self, text)
        elif text and await self.answer_question(text):
            await self.follow_turn()
        elif text:
            spec = self.spec
            message_id = await self.send(text)
            if spec is not None:
                note_start(self.conversation, self.environment, spec.workspace)
            await self.follow_turn(message_id)

    async def open(self, conversation: ConversationHandle, after: int) -> None:
        await self.rewind(conversation, after)
        async for entry in self.conversation.log.tail(after, is_idle=_stop_at_end):
            self.take(entry)
        if self.state.status == "running":
            await self.follow_turn()
        else:
            await self._settle_turn()

    async def follow_turn(self, message_id: str | None = None) -> None:
        await self._follow(message_id)
        await self._settle_turn()

    async def _settle_turn(self) -> None:
        """Ask for approvals until the turn ends or no more answers come; note how it ended."""
        while self.state.status == "waiting_for_confirmation" and await ask_approvals(self):
            await self._follow(None)
        self.note_end()
        note_pending_calls(self.conversation.id, self.state)

    async def _follow(self, message_id: str | None) -> State:
        self.following, self.interrupted = True, False
        try:
            last = self.printer.last_seq
            return await follow(
                self.conversation, message_id, last, TurnView(), show_event=self.take
            )
        finally:
            self.following = False

    async def ask(self, question: str) -> str | None:
        return await read_line(question)

    async def edit(self, text: str, in_editor: bool = False) -> None:
        if in_editor or not text:
            raise Conflict("An editor needs a terminal.")
        show(text)

    def leave(self) -> None:
        self.ended = True

    def _handle_interrupt(self, work: asyncio.Future[int], now: float) -> None:
        """Interrupt the turn at ^C; cancel `work` at the second one, or between turns."""
        if not self.following or now - self._last_interrupt < SECOND_INTERRUPT_WITHIN:
            self._left_at_work = self.following
            work.cancel()
            return
        self._last_interrupt, self.interrupted = now, True
        self._interrupt_task = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        show("  Interrupting. ^C once more leaves the conversation, which then waits for you.")
        try:
            await self.conversation.interrupt()
        except EXPECTED_ERRORS as error:
            self.report(error)


async def _stop_at_end() -> bool:
    return True

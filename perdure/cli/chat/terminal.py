"""The chat at a terminal: events print above an input line that is always there."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import ClassVar

from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.patch_stdout import patch_stdout

from perdure.cli.chat.approvals import ask_approvals
from perdure.cli.chat.banner import show_banner
from perdure.cli.chat.chat import Chat
from perdure.cli.chat.input_line import InputLine
from perdure.cli.chat.leaving import describe_leaving, leave_at_end_signals
from perdure.cli.chat.live_view import LiveView, render_status_line
from perdure.cli.chat.side_tasks import SideTasks
from perdure.cli.chat.slash_commands import run_slash_command
from perdure.cli.chat.turn_watch import watch_turn
from perdure.cli.output import note, show
from perdure.cli.rendering.chat import print_user_text
from perdure.client.ids import new_message_id
from perdure.client.protocol import ConversationHandle
from perdure.client.turn import is_turn_over
from perdure.events.entry import Entry
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS
from perdure.storage.errors import StoreUnavailable

PROMPT = "> "

SECOND_INTERRUPT_WITHIN = 2.0
"""Seconds in which a second ^C leaves the conversation."""

REST_POLL_INTERVAL = 3.0
"""Seconds between two looks for what others did, while the conversation is at rest."""


@dataclass
class Question:
    """A question that the next line answers; `draft` is what was typed before it came up."""

    text: str
    answer: asyncio.Future[str]
    draft: str


@dataclass
class TerminalChat(Chat):
    """A chat whose events, input and questions go on side by side."""

    interactive: ClassVar[bool] = True
    live: LiveView = field(default_factory=LiveView)
    question: Question | None = None
    interrupted: bool = False
    """Whether this turn was interrupted from here."""
    _busy: bool = False
    _expecting: bool = False
    """Whether a turn was asked for of which no event is there yet."""
    _settled_seq: int = -1
    _last_interrupt: float = float("-inf")
    _followers: asyncio.Task[None] | None = None
    _beside_turn: asyncio.Task[None] | None = None
    _approvals: asyncio.Task[None] | None = None
    _interrupting: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.input = InputLine(self, self._render, self._render_status, lambda: self.workspace)
        self._lines: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._tasks = SideTasks(self.input.session.app)
        self._unread: set[str] = set()  # messages that were sent, and are not in the log yet

    async def run(self) -> int:
        """Run the chat until it is left, and return the exit code."""
        if self.spec is None:
            newest = await self.conversation.require_open()
            await self.rewind(self.conversation, max(-1, newest.last_user_seq - 1))
        await show_banner(self)
        with patch_stdout(raw=True), leave_at_end_signals(self.leave):
            try:
                self._follow()
                self._tasks.start(self._process_lines())
                await self.input.session.prompt_async(set_exception_handler=False)
            finally:
                await self._tasks.stop(but=self._interrupting)  # it was asked for
        if text := describe_leaving(self, self._busy, self._busy and self.interrupted):
            note(text)
        return EXIT_OK if self._busy else self.exit_code

    def submit(self, text: str, shown: str) -> None:
        """Take a line: the answer to a question, a message, or a command."""
        if self.question is not None and self.question.answer.done():
            self.question.draft = text  # the next question must not be answered unseen
        elif self.question is not None and not text.startswith("/"):
            show(f"  {self.question.text}{text}")
            self.question.answer.set_result(text)
        elif text.strip():
            self.input.remember(text)
            self._lines.put_nowait((text.strip(), shown))

    async def _process_lines(self) -> None:
        while True:
            text, shown = await self._lines.get()
            try:
                if text.startswith("/"):
                    show(f"\n> {shown}")
                    await run_slash_command(self, text)
                else:
                    await self._send_message(text, shown)
            except EXPECTED_ERRORS as error:
                self.report(error)

    async def _send_message(self, text: str, shown: str) -> None:
        """Send a message at once; during a turn it stands above the prompt until it is read.

        The answer to a question is no message.
        """
        if not self._busy and await self.answer_question(text):
            print_user_text(shown)
            self._expect()
            return
        message_id = new_message_id()
        if self._busy:
            self.live.queued[message_id] = shown
        else:
            print_user_text(shown)
        self._unread.add(message_id)
        self._expect()
        try:
            await self.send(text, message_id)
        except BaseException:
            self.live.queued.pop(message_id, None)
            self._unread.discard(message_id)
            self._expecting = False
            self.input.text = self.input.text or text
            raise

    async def ask(self, question: str) -> str | None:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.question = Question(question, answer, self.input.text)
        self.input.text = ""
        try:
            return await answer
        finally:
            self.input.text, self.question = self.question.draft, None
            self.input.redraw()

    async def edit(self, text: str, in_editor: bool = False) -> None:
        if text:
            self.input.text = text
        if in_editor:
            await self.input.open_editor()

    def show_folded(self) -> None:
        self._lines.put_nowait(("/show", "/show"))

    async def open(self, conversation: ConversationHandle, after: int) -> None:
        await self.rewind(conversation, after)
        self.live = LiveView()
        self._unread.clear()
        self._set_busy(False)
        self._settled_seq = after + 1 if is_turn_over(self.state) else -1
        self._follow()

    async def follow_turn(self, message_id: str | None = None) -> None:  # noqa: ARG002
        self._expect()

    def _expect(self) -> None:
        self._expecting = True
        self.interrupted = False
        self._set_busy(True)
        self._wake.set()

    def _follow(self) -> None:
        """Print the events of the conversation from now on."""
        if self._followers is not None:
            self._followers.cancel()
        self._followers = self._tasks.start(self._follow_log())

    async def _follow_log(self) -> None:
        while True:
            try:
                tail = self.conversation.log.tail(self.printer.last_seq, is_idle=self._settle)
                async for entry in tail:
                    self.take(entry)
            except StoreUnavailable as error:
                self.report(error)
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), REST_POLL_INTERVAL)

    def take(self, entry: Entry) -> None:
        self._expecting = False
        message_id = getattr(entry.event, "message_id", None) or ""
        self._unread.discard(message_id)
        text = self.live.queued.get(message_id)
        self.live.finish_step(entry)
        if text is not None:
            print_user_text(text)
        super().take(entry)
        if self.question is not None and self.state.status != "waiting_for_confirmation":
            self._cancel_approvals()
        self._set_busy(self.at_work or bool(self._unread))

    async def _settle(self) -> bool:
        """Take note of a turn's end where nothing more is to be read; tell whether all rests."""
        busy = self.at_work or self._expecting or bool(self._unread)
        self._set_busy(busy)
        if not busy and self.state.turn and self._settled_seq < self.state.next_seq:
            self._settled_seq = self.state.next_seq
            self.note_end()
            asking = self._approvals is not None and not self._approvals.done()
            if self.state.status == "waiting_for_confirmation" and not asking:
                self._approvals = self._tasks.start(self._ask_approvals())
        return not busy

    def _set_busy(self, busy: bool) -> None:
        if busy and not self._busy:
            self.live.start()
            self._beside_turn = self._tasks.start(
                watch_turn(self.conversation, self.live.set_steps, self.input.redraw)
            )
        elif not busy and self._busy and self._beside_turn is not None:
            self._beside_turn.cancel()
        self._busy = busy
        self.input.redraw()

    async def _ask_approvals(self) -> None:
        seen = self.state.next_seq
        try:
            await ask_approvals(self)
            self._wake.set()
            if self.state.next_seq == seen:
                self._expect()
        except EXPECTED_ERRORS as error:
            self.report(error)

    def _cancel_approvals(self) -> None:
        if self._approvals is not None:
            self._approvals.cancel()

    def _render(self) -> AnyFormattedText:
        size = self.input.session.app.output.get_size()
        lines = self.live.render(size.columns, size.rows, self._busy)
        if self.question is not None:
            return [*lines, ("class:question", f"  {self.question.text}")]
        return [*lines, ("class:prompt", PROMPT)]

    def _render_status(self) -> AnyFormattedText:
        columns = self.input.session.app.output.get_size().columns
        return render_status_line(self.agent, self.state, self.conversation.id, columns)

    def interrupt(self) -> None:
        """Interrupt the turn, else clear the line; leave at the second time within 2 s."""
        now = asyncio.get_running_loop().time()
        is_second = now - self._last_interrupt < SECOND_INTERRUPT_WITHIN
        stoppable = self._busy or self.question is not None
        if self.input.text and (self.question is not None or not self._busy):
            self.input.session.default_buffer.reset()
        elif is_second:
            self.leave()
        elif stoppable:
            self._last_interrupt = now
            self._interrupting = self._tasks.start(self._interrupt())
        else:
            self._last_interrupt = now
            show("  ^C once more, ^D or /quit leaves; /help lists what there is.")

    async def _interrupt(self) -> None:
        self.interrupted = True
        show("  Interrupting. ^C once more leaves the conversation, which then waits for you.")
        try:
            await self.conversation.interrupt()
        except EXPECTED_ERRORS as error:
            self.interrupted = False
            self.report(error)

    def leave(self) -> None:
        if self.input.session.app.is_running and not self.input.session.app.is_done:
            self.input.session.app.exit(result=EXIT_OK)

"""Talking to a conversation: what the agent does, and what it must be allowed."""

import asyncio

from agent.evolve import fold
from agent.spec import Spec
from agent.state import State
from cli.chat_shown import Shown
from cli.failures import FORESEEN, OK, failure_of
from cli.following import exit_code, follow, note_waiting
from cli.keyboard import Keyboard
from cli.leaving import introduce
from cli.output import Format, note, show
from cli.stack import Place
from cli.waiting import asked, told
from client.conversation import Conversation
from client.errors import Invalid
from client.ids import new_message_id
from events.projection import digest

QUESTION = "  Allow it? y, n, or why not: "

TWICE = 2.0
"""Seconds within which a second ^C leaves the conversation."""


class Chat:
    """`spec` is for a conversation that has not begun; `code` tells of the last turn."""

    def __init__(
        self, conversation: Conversation, spec: Spec | None, place: Place, keyboard: Keyboard
    ) -> None:
        self.conversation = conversation
        self.spec = spec
        self.place = place
        self.keyboard = keyboard
        self.own: set[str] = set()
        self.shown = Shown(self.own)
        self.code = OK
        self._at_work = False
        self._pressed = float("-inf")
        self._stopping: asyncio.Task[None] | None = None

    async def catch_up(self) -> None:
        """Show the newest exchange, and go on with what it waits for."""
        state = await self.conversation.must_be_open()
        self.shown.after = max(-1, state.heard - 1)
        async for entry in self.conversation.log.tail(self.shown.after, idle=_at_once):
            state = fold(state, [digest(entry)])
            self.shown.tell(entry)
        if state.status == "running":
            await self.turn()
        else:
            await self._settle(state)

    async def say(self, text: str) -> None:
        """Send a message, and follow what comes of it."""
        message_id = new_message_id()
        self.own.add(message_id)
        if self.spec is None:
            await self.conversation.send(text, message_id)
        else:
            await self.conversation.start(text, self.spec, message_id)
            self.spec = None
            introduce(self.conversation, self.place)
        await self.turn(message_id)

    async def turn(self, message_id: str | None = None) -> None:
        """Show the turn to its end: the one of a message, or one that something set going."""
        await self._settle(await self._followed(message_id))

    async def _settle(self, state: State) -> None:
        """Ask for what the turn waits for, as long as somebody answers."""
        while state.status == "waiting_for_confirmation" and await self._answered():
            state = await self._followed(None)
        self.code = exit_code(state)
        if state.status not in ("finished", "error"):
            note(f"{state.status}{f': {state.reason}' if state.reason else ''}")
            note_waiting(self.conversation.id, state)

    async def _followed(self, message_id: str | None) -> State:
        self._at_work = True
        try:
            return await follow(
                self.conversation,
                message_id,
                self.shown.after,
                Format.text,
                tell=self.shown.tell,
            )
        finally:
            self._at_work = False

    async def _answered(self) -> bool:
        """Ask for each action that waits; false where no more answers come."""
        self.keyboard.forget()
        for call in asked(await self.conversation.status()):
            show(f"  ? {call.risk} risk  {await told(self.conversation, call)}")
            answer = await self._answer()
            if answer is None:
                return False
            accept = answer.lower() in ("y", "yes")
            reason = "" if answer.lower() in ("n", "no") else answer
            try:
                await self.conversation.respond(accept, [call.tool_call_id], reason=reason)
            except Invalid as error:  # somebody else has answered meanwhile
                note(str(error))
        return True

    async def _answer(self) -> str | None:
        while (answer := await self.keyboard.line(QUESTION)) is not None:
            if answer.strip():
                return answer.strip()
        return None

    def pressed(self, work: "asyncio.Future[int]", now: float) -> None:
        """^C: it interrupts the turn; the second one, or one at a prompt, leaves."""
        if not self._at_work or now - self._pressed < TWICE:
            work.cancel()
            return
        self._pressed = now
        self._stopping = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        show("  Interrupting. ^C once more leaves the conversation, which goes on.")
        try:
            await self.conversation.interrupt()
        except FORESEEN as error:
            show(failure_of(error).message)


async def _at_once() -> bool:
    return True

"""The handle of a conversation behind a gateway."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from perdure.agent.loop.start import ConversationStatus, RecordedMessage, RecordedSignal
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.api import conversations as api
from perdure.api import files as api_files
from perdure.api.reading import Diagnosis, News
from perdure.api.waiting import AnswerQuestion, AnswerResult, SendSignal
from perdure.client.absence import explain_absence
from perdure.client.file_change import FileChange, GatewayChanges
from perdure.client.http.address import quote_segment
from perdure.client.http.bodies import build_message, build_note, build_start
from perdure.client.http.connection import Connection
from perdure.client.http.live import watch_running_steps, watch_statuses
from perdure.client.http.log import HttpLog
from perdure.client.http.problems import build_body
from perdure.client.http.resource import HttpResource
from perdure.client.images import Image
from perdure.client.logged_conversation import LoggedConversation
from perdure.client.open_state import require_open
from perdure.client.patience import Outage
from perdure.client.recording import RecordedEvents
from perdure.client.running_step import RunningStep
from perdure.client.signals import build_signal
from perdure.client.trouble import Trouble
from perdure.errors import NotFound, TimedOut, Unreachable
from perdure.storage.grants import Access, Grant
from perdure.storage.noted_values import SessionValues

UPDATE_TIMEOUT = 60.0
"""Seconds for a worker to answer an update."""


class HttpConversation(LoggedConversation):
    """A conversation behind a gateway, with the methods of `Conversation`.

    Every method raises what that of `Conversation` raises for the same reason, and Unreachable if
    the gateway does not answer. A message that is sent has an id, so that it is sent again after a
    lost answer, and recorded once.
    """

    log: HttpLog

    def __init__(
        self, connection: Connection, user_id: str, conversation_id: str, owner: str | None
    ) -> None:
        self.id = conversation_id
        self.log = HttpLog(connection, user_id, conversation_id, owner)
        self._resource = HttpResource(connection, self.log.path, owner)
        self._outage = Outage()

    def __repr__(self) -> str:
        return f"HttpConversation({self.id!r})"

    async def start(
        self,
        text: str | None,
        spec: Agent | Mapping[str, Any] | str,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
        replay: RecordedEvents | None = None,
    ) -> None:
        """Start the conversation with a message; Temporal has it when this returns.

        Without a text and images the agent waits for its first message. The answers in the events
        of `replay` come before those of the model, and its first message is sent where there is no
        text: tools are called anew. The agent may be one of the gateway's by its name, or fields
        that extend it. Raises Invalid, too.
        """
        body = await build_start(self.id, text, spec, message_id, images, title, replay)
        if text is not None or images or replay is not None:
            self._sent_id, self._sent_after = body.message_id, -1
        await self._resource.connection.post(
            "/v1/conversations", api.Conversation, body, repeatable=True
        )

    async def send(
        self,
        text: str,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> None:
        """Send a message; with `reopen` it opens a closed conversation again. Raises Invalid too.

        Without `run` it is only recorded: an agent at rest sees it once `resume`, or another
        message, makes it run.
        `images` are http addresses, files, bytes, or `data:image/…` with the image itself.
        """
        await self._send(text, message_id, images, reopen, run, wait=False)

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        max_wait: float = UPDATE_TIMEOUT,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> RecordedMessage:
        """Send a message, and wait until it is in the log; `reopen` and `run` are as for
        `send`.

        Raises what `send` raises, and TimedOut after `max_wait` seconds: the message may still
        arrive then.
        """
        try:
            async with asyncio.timeout(max_wait):
                recorded = await self._send(text, message_id, images, reopen, run, wait=True)
        except TimeoutError as error:
            hint = "It may still be recorded; the same `message_id` again makes no second one."
            raise TimedOut(f"The message was not recorded within {max_wait:g} s.", hint) from error
        assert recorded is not None, "a gateway that waits says where the message is"
        return recorded

    async def _send(
        self,
        text: str,
        message_id: str | None,
        images: Sequence[Image],
        reopen: bool,
        run: bool,
        wait: bool,
    ) -> RecordedMessage | None:
        body = await build_message(text, message_id, images, wait, reopen, run)
        self._sent_id, self._sent_after = body.message_id, await self.log.end() - 1
        kind: Any = RecordedMessage | None
        recorded: RecordedMessage | None = await self._resource.post(
            "/messages", kind, body, repeatable=True, max_wait=UPDATE_TIMEOUT
        )
        return recorded

    async def status(self) -> ConversationStatus:
        """Ask for the status: the workflow's, else that of the log. Raises NotFound."""
        shown = await self._resource.get("", api.Conversation)
        return shown.status

    async def diagnose(self) -> Trouble | None:
        """Ask what blocks the conversation; None if it progresses."""
        found = (await self._resource.get("/trouble", Diagnosis)).trouble
        return Trouble(found.cause, found.sentence, found.slow) if found else None

    async def exists(self) -> bool:
        """Tell whether it has been started, even if no worker has taken it up yet."""
        try:
            await self._resource.get("", api.Conversation)
        except NotFound:
            if self._resource.owner is not None:  # without a grant nobody is told
                raise
            return False
        return True

    async def values(self) -> dict[str, Any]:
        """Read its noted state; keys of `user:` and `app:` are shared with other conversations."""
        noted = await self._resource.get("/values", api.Values)
        return dict(noted.values)

    async def read_values(self) -> SessionValues:
        """Read its noted state with the versions of shared values, for `note` to replace them."""
        noted = await self._resource.get("/values", api.Values)
        return SessionValues(dict(noted.values), dict(noted.versions))

    async def changes(self, after: int = -1) -> GatewayChanges:
        """Compare the files of the workspace after slot `after` with the newest ones."""
        found = await self._resource.get("/diff", api_files.Changes, after_seq=after)
        files = [FileChange(**dict(item)) for item in found.items]
        return GatewayChanges(files, found.faults, found.diff)

    async def files(self, at: int | None = None) -> api_files.Files:
        """List the files of the workspace as they were kept last up to slot `at`."""
        return await self._resource.get("/files", api_files.Files, at=at)

    async def read_file(self, path: str, at: int | None = None) -> bytes:
        """Read a file of the workspace as it was kept last up to slot `at`. Raises NotFound."""
        quoted = "/".join(map(quote_segment, path.split("/")))
        return await self._resource.get(f"/files/{quoted}", bytes, at=at)

    def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        """Yield the running steps that have said anything, whenever their text grows, forever."""
        return watch_running_steps(self.log)

    def _watch_statuses(self) -> AsyncGenerator[ConversationStatus, None]:
        return watch_statuses(self.log)

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's text of that turn piece by piece while it grows, and end with it."""
        turn = await self._turn()
        async with self.log.follow(turn.after) as following:

            async def list_steps() -> tuple[RunningStep, ...]:
                return tuple(following.steps.values())

            async with aclosing(turn.text(list_steps)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _has_news(self, next_seq: int) -> bool | None:
        try:
            news = await self._resource.get("/news", News, next_seq=next_seq)
        except Unreachable:
            return None
        return news.has_news

    async def _check_workflow(self) -> None:
        try:
            news = await self._resource.get("/news", News, next_seq=0)
        except Unreachable as error:
            self._outage.bear(error, self.id)
            return
        self._outage.end()
        if not news.has_workflow:
            raise await explain_absence(self.log)

    async def pause(self) -> None:
        """Pause between two steps. Raises Conflict if no workflow is running, too."""
        await self._resource.post("/pause", type(None), repeatable=True)

    async def resume(self) -> None:
        """Go on after a pause, an interrupt, an error or a limit."""
        await self._resource.post("/resume", type(None))

    async def interrupt(self) -> None:
        """Stop the running model or tool call; the conversation waits for its user."""
        await self._resource.post("/interrupt", type(None))

    async def condense(self) -> None:
        """Condense the view before the next model call."""
        await self._resource.post("/condense", type(None))

    async def close(self) -> None:
        """Close the conversation; its log stays, and `send` may open it again."""
        await self._resource.post("/close", type(None))

    async def delete(self) -> None:
        """Close the conversation and hide it from lists; its log stays.

        Raises NotFound, and Forbidden for another user's. `perdure rm` deletes what is stored.
        """
        await self._resource.delete()

    async def describe(self, with_state: bool = True) -> api.Conversation:
        """Describe it as lists do: its status, application, agent, times and session state.

        Raises NotFound.
        """
        return await self._resource.get("", api.Conversation, with_state=with_state)

    async def respond(
        self,
        accept: bool,
        calls: Sequence[str] = (),
        through: int | None = None,
        reason: str = "",
        run: bool = True,
    ) -> list[str]:
        """Accept or reject waiting actions, and return the ids of their calls.

        `calls` are call ids; alternatively `through` selects all actions up to that slot, so that
        nothing is accepted unseen. The model is shown the `reason` of a rejection;
        without `run` the agent rests after it, until `resume` or a message.
        """
        body = build_body(
            api.Respond, accept=accept, calls=tuple(calls), through=through, reason=reason, run=run
        )
        settled = await self._resource.post(
            "/respond", api.RespondResult, body, max_wait=UPDATE_TIMEOUT
        )
        return list(settled.calls)

    async def signal(
        self, name: str, data: Any = None, signal_id: str | None = None
    ) -> RecordedSignal:
        """Send a signal by its name to the agent, and wait until it is in the log.

        The agent's wait for it ends with `data`, JSON of 32 KiB at most; without such a wait it is
        kept for the next one, and 50 at most are: a further one raises Conflict. The same
        `signal_id` again is recorded once.
        """
        sent = build_signal(name, data, signal_id)
        body = build_body(SendSignal, data=sent["data"], signal_id=sent["signal_id"])
        path = f"/signals/{quote_segment(name)}"
        return await self._resource.post(path, RecordedSignal, body, max_wait=UPDATE_TIMEOUT)

    async def answer(
        self, text: str | None = None, choice: str | None = None, call: str | None = None
    ) -> str:
        """Answer the question that the agent waits with, and return the answer as recorded.

        It is one of the question's choices, or a text in other words; `call` is the id of the tool
        call that asks. Raises Invalid where no question waits.
        """
        body = build_body(AnswerQuestion, text=text, choice=choice, call=call)
        result = await self._resource.post("/answer", AnswerResult, body, max_wait=UPDATE_TIMEOUT)
        return result.text

    async def configure(self, changes: Mapping[str, Any]) -> RecordedMessage:
        """Change fields of the spec (model, limits, tags …); return where that is recorded."""
        body = build_body(api.Configure, changes=dict(changes))
        return await self._resource.post(
            "/configure", RecordedMessage, body, max_wait=UPDATE_TIMEOUT
        )

    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Record metadata; `tags` replace the earlier ones, `state` is merged by key.

        Keys of `user:` and `app:` are shared with other conversations; None deletes a value. A
        shared value that is no longer of the version in `versions`, as `read_values` has it, is not
        replaced: that raises Conflict. Raises Forbidden for `app:` values where the user may not
        change them.
        """
        body = build_note(title, tags, state, versions)
        await self._resource.patch(api.Conversation, body, UPDATE_TIMEOUT)

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the conversation, or also steer it; see `Client.conversation`.

        Raises NotFound, Forbidden for another user's conversation, and Invalid for a bad user id.
        """
        await self._resource.grant(user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await self._resource.revoke(user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await self._resource.list_grants()

    async def require_open(self) -> State:
        """Return the state of the log. Raises NotFound, and Conflict if it is closed or damaged."""
        return await require_open(self.log, self.exists)

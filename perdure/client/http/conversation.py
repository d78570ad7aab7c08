"""The handle of a conversation behind a gateway."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from perdure.agent.loop.start import ConversationStatus, RecordedMessage
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.api import conversations as api
from perdure.api import files as api_files
from perdure.api.reading import Diagnosis, News
from perdure.client.file_change import FileChange
from perdure.client.http.address import grant_path, quote_segment
from perdure.client.http.connection import Connection
from perdure.client.http.log import HttpLog
from perdure.client.ids import new_message_id
from perdure.client.images import Image, check_image
from perdure.client.logged_conversation import LoggedConversation
from perdure.client.open_state import require_open
from perdure.client.patience import Outage
from perdure.client.running_step import RunningStep
from perdure.client.trouble import Trouble
from perdure.errors import NotFound, TimedOut, Unreachable
from perdure.events.images import to_data_url
from perdure.storage.grants import Access, Grant

T = TypeVar("T")

UPDATE_TIMEOUT = 60.0
"""Seconds for a worker to answer an update."""


@dataclass(frozen=True)
class GatewayChanges:
    """The changes that some events made in a workspace, as the gateway lists them."""

    files: Sequence[FileChange]
    faults: Sequence[str]
    unified: str

    def summarize(self) -> list[FileChange]:
        return list(self.files)

    def diff(self) -> str:
        return self.unified


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
        self._connection = connection
        self._owner = owner
        self._outage = Outage()

    def __repr__(self) -> str:
        return f"HttpConversation({self.id!r})"

    async def start(
        self,
        text: str | None,
        spec: Agent,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
    ) -> None:
        """Start the conversation with a message; Temporal has it when this returns.

        Without a text and images the agent waits for its first message. Raises Invalid, too.
        """
        body = api.Start(
            text=text,
            agent=spec,
            conversation_id=self.id,
            message_id=message_id or new_message_id(),
            images=await _encode_images(images),
            title=title,
        )
        if text is not None or images:
            self._sent_id, self._sent_after = body.message_id, -1
        await self._connection.post("/v1/conversations", api.Conversation, body, repeatable=True)

    async def send(
        self, text: str, message_id: str | None = None, images: Sequence[Image] = ()
    ) -> None:
        """Send a message. Raises Invalid too.

        `images` are http addresses, files, bytes, or `data:image/…` with the image itself.
        """
        await self._send(text, message_id, images, wait=False)

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        max_wait: float = UPDATE_TIMEOUT,
        images: Sequence[Image] = (),
    ) -> RecordedMessage:
        """Send a message, and wait until it is in the log.

        Raises what `send` raises, and TimedOut after `max_wait` seconds: the message may still
        arrive then.
        """
        try:
            async with asyncio.timeout(max_wait):
                recorded = await self._send(text, message_id, images, wait=True)
        except TimeoutError as error:
            hint = "It may still be recorded; the same `message_id` again makes no second one."
            raise TimedOut(f"The message was not recorded within {max_wait:g} s.", hint) from error
        assert recorded is not None, "a gateway that waits says where the message is"
        return recorded

    async def _send(
        self, text: str, message_id: str | None, images: Sequence[Image], wait: bool
    ) -> RecordedMessage | None:
        message_id = message_id or new_message_id()
        encoded = await _encode_images(images)
        body = api.SendMessage(text=text, message_id=message_id, images=encoded, wait=wait)
        self._sent_id, self._sent_after = message_id, await self.log.end() - 1
        kind: Any = RecordedMessage | None
        recorded: RecordedMessage | None = await self._post(
            "/messages", kind, body, repeatable=True, max_wait=UPDATE_TIMEOUT
        )
        return recorded

    async def status(self) -> ConversationStatus:
        """Ask for the status: the workflow's, else that of the log. Raises NotFound."""
        shown = await self._get("", api.Conversation)
        return shown.status

    async def diagnose(self) -> Trouble | None:
        """Ask what blocks the conversation; None if it progresses."""
        found = (await self._get("/trouble", Diagnosis)).trouble
        return Trouble(found.cause, found.sentence, found.slow) if found else None

    async def exists(self) -> bool:
        """Tell whether it has been started, even if no worker has taken it up yet."""
        try:
            await self._get("", api.Conversation)
        except NotFound:
            if self._owner is not None:  # without a grant nobody is told
                raise
            return False
        return True

    async def values(self) -> dict[str, Any]:
        """Read its noted state; keys of `user:` and `app:` are shared with other conversations."""
        noted = await self._get("/values", api.Values)
        return dict(noted.values)

    async def changes(self, after: int = -1) -> GatewayChanges:
        """Compare the files of the workspace after slot `after` with the newest ones."""
        found = await self._get("/diff", api_files.Changes, after_seq=after)
        files = [FileChange(**dict(item)) for item in found.items]
        return GatewayChanges(files, found.faults, found.diff)

    async def files(self, at: int | None = None) -> api_files.Files:
        """List the files of the workspace as they were kept last up to slot `at`."""
        return await self._get("/files", api_files.Files, at=at)

    async def read_file(self, path: str, at: int | None = None) -> bytes:
        """Read a file of the workspace as it was kept last up to slot `at`. Raises NotFound."""
        quoted = "/".join(map(quote_segment, path.split("/")))
        return await self._get(f"/files/{quoted}", bytes, at=at)

    async def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        """Yield the running steps that have said anything, whenever their text grows, forever."""
        previous: tuple[RunningStep, ...] = ()
        async with self.log.follow(await self.log.end() - 1) as following:
            while True:
                current = tuple(following.steps.values())
                if current != previous:
                    yield current
                    previous = current
                elif following.failure is not None:
                    raise following.failure
                else:
                    await following.wait()

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's text of that turn piece by piece while it grows, and end with it."""
        turn = await self._turn()
        async with self.log.follow(turn.after) as following:

            async def list_steps() -> tuple[RunningStep, ...]:
                return tuple(following.steps.values())

            async for piece in turn.text(list_steps):
                yield piece

    async def _has_news(self, next_seq: int) -> bool | None:
        try:
            news = await self._get("/news", News, next_seq=next_seq)
        except Unreachable:
            return None
        return news.has_news

    async def _check_workflow(self) -> None:
        try:
            await self._get("/news", News, next_seq=0)
        except Unreachable as error:
            self._outage.bear(error, self.id)
        else:
            self._outage.end()

    async def pause(self) -> None:
        """Pause between two steps. Raises Conflict if no workflow is running, too."""
        await self._post("/pause", type(None), repeatable=True)

    async def resume(self) -> None:
        """Go on after a pause, an interrupt, an error or a limit."""
        await self._post("/resume", type(None))

    async def interrupt(self) -> None:
        """Stop the running model or tool call; the conversation waits for its user."""
        await self._post("/interrupt", type(None))

    async def condense(self) -> None:
        """Condense the view before the next model call."""
        await self._post("/condense", type(None))

    async def close(self) -> None:
        """End the conversation for good; its log stays."""
        await self._post("/close", type(None))

    async def respond(
        self, accept: bool, calls: Sequence[str] = (), through: int | None = None, reason: str = ""
    ) -> list[str]:
        """Accept or reject waiting actions, and return the ids of their calls.

        `calls` are call ids; alternatively `through` selects all actions up to that slot, so that
        nothing is accepted unseen. The model is shown the `reason` of a rejection.
        """
        body = api.Respond(accept=accept, calls=tuple(calls), through=through, reason=reason)
        settled = await self._post("/respond", api.RespondResult, body, max_wait=UPDATE_TIMEOUT)
        return list(settled.calls)

    async def configure(self, changes: Mapping[str, Any]) -> RecordedMessage:
        """Change fields of the spec (model, limits, tags …); return where that is recorded."""
        body = api.Configure(changes=dict(changes))
        return await self._post("/configure", RecordedMessage, body, max_wait=UPDATE_TIMEOUT)

    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Record metadata; `tags` replace the earlier ones, `state` is merged by key."""
        noted = None if tags is None else tuple(tags)
        body = api.Note(title=title, tags=noted, state=None if state is None else dict(state))
        await self._connection.patch(
            self.log.path, api.Conversation, body, max_wait=UPDATE_TIMEOUT, owner=self._owner
        )

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the conversation, or also steer it; see `Client.conversation`.

        Raises NotFound, Forbidden for another user's conversation, and Invalid for a bad user id.
        """
        body = api.ShareConversation(access=access)
        path = grant_path(self.log.path, user_id)
        await self._connection.put(path, body, owner=self._owner)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await self._connection.delete(grant_path(self.log.path, user_id), owner=self._owner)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        listed = await self._get("/grants", api.Grants)
        return [Grant(user_id=each.user_id, access=each.access) for each in listed.items]

    async def require_open(self) -> State:
        """Return the state of the log. Raises NotFound, and Conflict if it is closed or damaged."""
        return await require_open(self.log, self.exists)

    async def _get(self, path: str, kind: type[T], **query: Any) -> T:
        return await self._connection.get(self.log.path + path, kind, owner=self._owner, **query)

    async def _post(
        self, path: str, kind: type[T], body: BaseModel | None = None, **options: Any
    ) -> T:
        return await self._connection.post(
            self.log.path + path, kind, body, owner=self._owner, **options
        )


async def _encode_images(images: Sequence[Image]) -> tuple[str, ...]:
    """Return what a request has in the place of images. Raises Invalid."""
    return tuple([await asyncio.to_thread(_encode_image, image) for image in images])


def _encode_image(image: Image) -> str:
    checked = check_image(image)
    return checked if isinstance(checked, str) else to_data_url(checked)

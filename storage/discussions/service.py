"""The shared log of discussions, for programs that run their own agents."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from pydantic import ValidationError

from perdure.agent.discussion.log_state import GRANT
from perdure.agent.discussion.pruning import (
    BeforeSequence,
    ByCount,
    ByType,
    parse_policy,
)
from perdure.errors import Invalid
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.discussion import (
    SYSTEM,
    AgentVisibleEvent,
    DiscussionEvent,
    DiscussionEventType,
    EventMeta,
    system_content,
)
from perdure.events.validation_errors import describe_errors
from perdure.storage.cache import Cache
from perdure.storage.discussions.archive import Pruning
from perdure.storage.discussions.shared_log import SharedLog, find_start, select_visible
from perdure.storage.open import open_store
from perdure.storage.store import S3Access, Store

MAX_LIMIT = 100
"""Most events that one call returns."""

MAX_OPEN_SESSIONS = 64
"""Sessions whose state stays in memory."""


class EventLogService:
    """The logs that agents share, of one user: the only channel between them.

    An event is written once, and the store numbers them without gaps, whoever writes at once.
    The log itself refuses what a speaker may not write: agents write INTENT and VOTE, and SPEECH
    when it was granted; the moderator SUMMARY; the system SYSTEM and VOTE. There is no call that
    returns everything: every reading names a `limit` from 1 to 100.

    Every method raises Invalid for a bad argument, and StoreError.
    """

    def __init__(self, store: Store, user_id: str = "local") -> None:
        self.store = store
        self.user_id = user_id
        self._sessions: Cache[str, SharedLog] = Cache(MAX_OPEN_SESSIONS)

    @classmethod
    def open(cls, url: str, user_id: str = "local", access: S3Access | None = None) -> Self:
        """Open the store at `s3://bucket/prefix` or `file:///folder`."""
        try:
            return cls(open_store(url, access), user_id)
        except ValueError as error:
            raise Invalid(str(error)) from error

    async def close(self) -> None:
        """End the connections to the store."""
        await self.store.close()

    async def append_event(
        self,
        session_id: str,
        type: DiscussionEventType,
        speaker: str,
        content: str | Mapping[str, Any] | Sequence[Any],
        meta: EventMeta | Mapping[str, Any] | None = None,
        *,
        event_id: str | None = None,
        timestamp: str | None = None,
    ) -> DiscussionEvent:
        """Write an event, and return it with its sequence.

        With an `event_id`, a call that is repeated changes nothing, and returns what is stored.
        Raises Forbidden if the speaker may not write it, and Conflict if the id is taken by an
        event of another type or speaker.
        """
        log = self._log(session_id)
        try:
            draft = DiscussionEvent.model_validate(
                {
                    "event_id": event_id or str(uuid.uuid4()),
                    "type": type,
                    "speaker": speaker,
                    "content": content,
                    "timestamp": timestamp or _now(),
                    "session_id": session_id,
                    "sequence": 1,
                    "meta": meta.model_dump() if isinstance(meta, EventMeta) else meta,
                }
            )
        except ValidationError as error:
            raise Invalid(f"This is no event: {describe_errors(error)}.") from error
        return await log.append(draft, await find_start(log, event_id) if event_id else None)

    async def grant_speech(
        self, session_id: str, speaker: str, meta: EventMeta | Mapping[str, Any] | None = None
    ) -> DiscussionEvent:
        """Let the speaker give one SPEECH; this writes the SYSTEM event that says so."""
        content = system_content(GRANT, speaker=speaker)
        return await self.append_event(session_id, "SYSTEM", SYSTEM, content, meta)

    async def get_recent_events(self, session_id: str, limit: int) -> list[DiscussionEvent]:
        """Return the newest visible events, in order."""
        check_limit(limit)
        log = self._log(session_id)
        return await log.read(select_visible(await log.refresh(), limit))

    async def get_events_by_type(
        self, session_id: str, type: DiscussionEventType, limit: int
    ) -> list[DiscussionEvent]:
        """Return the newest visible events of a type, in order."""
        check_limit(limit)
        log = self._log(session_id)
        return await log.read(select_visible(await log.refresh(), limit, (type,)))

    async def get_events_after_sequence(
        self, session_id: str, sequence: int, limit: int
    ) -> list[DiscussionEvent]:
        """Return the visible events that follow a sequence, the first of them; 0 is the start."""
        check_limit(limit)
        log = self._log(session_id)
        state = await log.refresh()
        return await log.read([it for it, _ in state.visible if it > sequence][:limit])

    async def get_agent_visible_events(
        self, session_id: str, limit: int
    ) -> list[AgentVisibleEvent]:
        """Return the newest visible events as agents see them: without ids, content as text."""
        events = await self.get_recent_events(session_id, limit)
        return [AgentVisibleEvent.from_event(event) for event in events]

    async def prune_events(
        self, session_id: str, policy: ByCount | ByType | BeforeSequence | Mapping[str, Any]
    ) -> Pruning | None:
        """Take events out of what readers see; None if there were none to take out.

        A policy may be given as a table: `{"type": "byCount", "keep": 50}`. The objects stay, and
        `get_archived_events` reads them.
        """
        return await self._log(session_id).prune(parse_policy(policy), _now())

    async def get_archive(self, session_id: str, limit: int, after: int = 0) -> list[Pruning]:
        """Return the manifest of what was pruned, from the pruning behind number `after` on."""
        check_limit(limit)
        return await self._log(session_id).read_prunings(after, limit)

    async def get_archived_events(
        self, session_id: str, sequence: int, limit: int
    ) -> list[DiscussionEvent]:
        """Return the pruned events that follow a sequence, the first of them."""
        check_limit(limit)
        log = self._log(session_id)
        archived: set[int] = set()
        number = 0
        while prunings := await log.read_prunings(number, 1000):
            for pruning in prunings:
                archived.update(it for it in pruning.sequences() if it > sequence)
            number = prunings[-1].number
        return await log.read(sorted(archived)[:limit])

    def _log(self, session_id: str) -> SharedLog:
        log = self._sessions.get(session_id)
        if log is None:
            try:
                log = SharedLog(self.store, self.user_id, session_id)
            except ValueError as error:
                raise Invalid(str(error)) from error
            self._sessions.put(session_id, log)
        return log


def check_limit(limit: int) -> None:
    """Raise Invalid unless the limit is from 1 to 100."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise Invalid(
            f"{limit!r} is no limit of a reading.",
            f"Name one from 1 to {MAX_LIMIT}: no call returns everything.",
        )


def _now() -> str:
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)

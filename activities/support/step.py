"""Heartbeats, identity and failures of every activity."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.support.faults import to_failure
from perdure.agent.loop.model_queues import REROUTED_SUFFIX
from perdure.errors import PerdureError
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.entry import Entry, Origin
from perdure.events.projection import summarize
from perdure.events.status import Loading, describe_loading
from perdure.events.summary import EventSummary
from perdure.models.model import ModelUnavailable
from perdure.secrets.registry import Secrets
from perdure.storage.errors import Altered, Damaged, Fenced, Missing, Superseded, explain_read_only
from perdure.temporal.heartbeats import HeartbeatTimer, StepKey
from perdure.temporal.names import conversation_id_of, owner_of
from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT

MAX_HEARTBEAT_CHARS = 2000
"""Length limit of the text in a heartbeat; its end is kept."""

FIRST_MODEL_DELAY = 0.5
"""Seconds until a model that is unavailable is asked again, doubled with each attempt."""

MAX_DELAY_DOUBLINGS = 6

T = TypeVar("T")


class StepProgress:
    """The text of a running step for its watchers; `changed_at` is when it last grew.

    It is masked here, as its readers cut it, and nobody would recognise a part of a secret.
    """

    def __init__(self, secrets: Secrets) -> None:
        self.started_at = self.changed_at = now()
        self.last_beat = asyncio.get_running_loop().time()
        self.longest_silence = 0.0
        self._secrets = secrets
        self._text = ""
        self.loading: tuple[Loading, ...] = ()
        """What this step prepares before it goes on."""

    def beat(self) -> float:
        """Note a heartbeat; return the longest silence of this step in seconds."""
        time = asyncio.get_running_loop().time()
        self.longest_silence = max(self.longest_silence, time - self.last_beat)
        self.last_beat = time
        return self.longest_silence

    def report(self, text: str) -> None:
        if text != self._text:
            self.changed_at = now()
        self._text = text

    def load(self, *loading: Loading) -> None:
        """Say what is prepared now; nothing once the step goes on."""
        self.loading = loading

    def start_servers(self, names: Sequence[str]) -> None:
        """Say which MCP servers have not answered yet."""
        self.load(*(Loading(what="mcp_server", name=name) for name in names))
        sentence = describe_loading(self.loading)
        self.report(f"{sentence} ..." if sentence else "")

    @property
    def text(self) -> str:
        """The whole text, with secrets masked."""
        return self._secrets.mask(self._text)

    @property
    def shareable_text(self) -> str:
        """The masked text, without an end that may be the beginning of a secret."""
        return self._secrets.mask_partial(self._text)


@contextlib.asynccontextmanager
async def heartbeating(secrets: Secrets) -> AsyncIterator[StepProgress]:
    """Heartbeat while the body runs; turn its errors into failures, final where no retry helps."""
    progress = StepProgress(secrets)
    # A local activity has no heartbeat: it is over before one would be due.
    heartbeats = None if is_local() else _start_heartbeats(progress)
    try:
        yield progress
    except (Damaged, Missing) as error:
        raise _read_only_failure(error) from error
    except (Fenced, Superseded, Altered) as error:
        raise non_retryable(error) from error
    except ModelUnavailable as error:
        # Without its cause: Temporal cuts what a client is told of a failure at 4 KiB.
        raise _retry_later(error) from None
    except (ApplicationError, PerdureError):
        raise
    except Exception as error:
        raise to_failure(error) from None
    finally:
        if heartbeats is not None:
            heartbeats.stop()


def _start_heartbeats(progress: StepProgress) -> HeartbeatTimer:
    """Heartbeat from now on, with the text of the step for its watchers."""

    def send() -> None:
        progress.beat()
        text = progress.shareable_text
        offset = max(0, len(text) - MAX_HEARTBEAT_CHARS)
        details = {
            "started": progress.started_at,
            "changed_at": progress.changed_at,
            "text": text[offset:],
            "offset": offset,
            "loading": [each.model_dump(exclude_none=True) for each in progress.loading],
        }
        activity.heartbeat(details)

    info = activity.info() if activity.in_activity() else None
    key = StepKey(info.workflow_run_id or "", info.activity_id) if info else StepKey("", "")
    is_of_batch = info is not None and bool(info.priority.priority_key)
    return HeartbeatTimer(key, _find_timeout(), send, background=is_of_batch)


def _find_timeout() -> float:
    """Return the seconds after which Temporal takes a silent attempt for lost."""
    timeout = activity.info().heartbeat_timeout if activity.in_activity() else None
    return (timeout or HEARTBEAT_TIMEOUT).total_seconds()


def ensure_not_given_up(progress: StepProgress) -> None:
    """Raise ApplicationError if this attempt was silent beyond its heartbeat timeout.

    Otherwise it would go on beside the attempt that replaced it, and pay twice.
    """
    timeout = activity.info().heartbeat_timeout
    silent = progress.beat()
    if timeout is not None and silent >= timeout.total_seconds():
        raise ApplicationError(
            f"This worker said nothing for {silent:.1f} s, so the step was begun again elsewhere.",
            type="GivenUp",
        )


async def ignore_cancellation(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` despite cancellation, and return its result.

    A result that is paid for, or an effect that has happened, must be recorded.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        return await task


def non_retryable(error: Exception) -> ApplicationError:
    """Build the failure of a step that must not be retried."""
    return final_failure(type(error).__name__, str(error))


def final_failure(kind: str, sentence: str) -> ApplicationError:
    """Build the failure of a step that must not be retried, for a reason of our own."""
    return ApplicationError(sentence, type=kind, non_retryable=True)


def _read_only_failure(error: Damaged | Missing) -> ApplicationError:
    """Build the failure of a step that met a damaged or missing slot."""
    conversation = conversation_id_of(activity.info().workflow_id or "")
    return final_failure(type(error).__name__, explain_read_only(conversation, error))


def _retry_later(error: ModelUnavailable) -> ApplicationError:
    """Build a failure that Temporal retries, after the provider's delay if it names one."""
    delay = error.retry_after
    if delay is None:
        doublings = min(activity.info().attempt - 1, MAX_DELAY_DOUBLINGS)
        delay = FIRST_MODEL_DELAY * 2**doublings
    return ApplicationError(
        str(error),
        error.code,
        error.model,
        type="ModelUnavailable",
        next_retry_delay=timedelta(seconds=delay),
    )


def origin(part: str = "") -> Origin:
    """Return the unique name of this step, the same on every attempt and queue.

    A step that appends more than once names each `part`.
    """
    info = activity.info()
    assert info.workflow_run_id is not None, "a step belongs to a workflow"
    name = info.activity_id.rstrip(REROUTED_SUFFIX)
    name = f"{name} {part}" if part else name
    return Origin(run=info.workflow_run_id, activity=name)


def runs_without_owner() -> bool:
    """Tell whether the workflow of this step has no user in its id."""
    return activity.in_activity() and owner_of(activity.info().workflow_id or "") is None


def check_owner(user_id: str) -> None:
    """Raise ApplicationError if the id of this step's workflow names another user."""
    owner = owner_of(activity.info().workflow_id or "") if activity.in_activity() else None
    if owner not in (None, user_id):
        sentence = f"The workflow of the user {owner} asks for what is of {user_id}: use its id."
        raise final_failure("OtherUser", sentence)


def was_cancel_requested() -> bool:
    """Tell whether the cancellation was requested, so that no retry follows."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def is_retry() -> bool:
    """Tell whether an earlier attempt may have done this step, or a part of it."""
    info = activity.info()
    return info.attempt > 1 or info.activity_id.endswith(REROUTED_SUFFIX)


def is_local() -> bool:
    """Tell whether this attempt runs inside a workflow task, which must not wait for anything."""
    return activity.in_activity() and activity.info().is_local


def now() -> str:
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)


def summarize_all(entries: list[Entry]) -> list[EventSummary]:
    return [summarize(entry) for entry in entries]

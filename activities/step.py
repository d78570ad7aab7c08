"""What every step does around its work: say that it lives, say who it is, fail in clear words."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from agent.lanes import AGAIN
from events.digest import Digest
from events.entry import Entry, Origin
from events.projection import digest
from models.model import ModelUnavailable
from storage.errors import (
    Altered,
    Damaged,
    Fenced,
    Missing,
    StoreError,
    Superseded,
    read_only,
)
from tools.secrets.registry import Secrets

BEAT = 0.25
"""Seconds between heartbeats: as long as an interrupt takes to arrive."""

SHOWN = 2000
"""Characters of the newest text that travel with a heartbeat."""

NO_SECRETS = Secrets()
"""For steps whose words nobody watches."""

T = TypeVar("T")


class News:
    """The newest words of a step, for those who watch it; `told` is when they last grew."""

    def __init__(self, secrets: Secrets) -> None:
        self.started = self.told = now()
        self.beaten = asyncio.get_running_loop().time()
        self.silent = 0.0
        self._secrets = secrets
        self._text = ""

    def beat(self) -> float:
        """For how long this step has been silent at most, in seconds."""
        moment = asyncio.get_running_loop().time()
        self.silent = max(self.silent, moment - self.beaten)
        self.beaten = moment
        return self.silent

    def tell(self, text: str) -> None:
        if text != self._text:
            self.told = now()
        self._text = text

    @property
    def text(self) -> str:
        """All of it, without the values of secrets."""
        return self._secrets.mask(self._text)

    @property
    def so_far(self) -> str:
        """What may be shown while there is more to come: not the beginning of such a value."""
        return self._secrets.mask_beginning(self._text)


@contextlib.asynccontextmanager
async def at_work(secrets: Secrets = NO_SECRETS) -> AsyncIterator[News]:
    """Heartbeats while the work goes on, and turns what no retry mends into a final failure."""
    news = News(secrets)
    beating = asyncio.create_task(_beat(news))
    try:
        yield news
    except (Damaged, Missing) as error:
        raise _read_only(error) from error
    except (Fenced, Superseded, Altered) as error:
        raise final(error) from error
    except StoreError as error:
        raise ApplicationError(str(error), type=type(error).__name__) from error
    finally:
        beating.cancel()


async def _beat(news: News) -> None:
    while True:
        await asyncio.sleep(BEAT)
        news.beat()
        told = {"started": news.started, "told": news.told, "text": news.so_far[-SHOWN:]}
        activity.heartbeat(told)


def must_be_awaited(news: News) -> None:
    """Raises ApplicationError where this attempt was silent for so long that it has been given up.

    It would go on all the same, beside the attempt that has taken its place, and pay twice.
    """
    patience = activity.info().heartbeat_timeout
    silent = news.beat()
    if patience is not None and silent >= patience.total_seconds():
        raise ApplicationError(
            f"This worker said nothing for {silent:.1f} s, so the step was begun again elsewhere.",
            type="GivenUp",
        )


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do it whoever stops this step meanwhile: what is paid for, or done, must be on record."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        return await task


def final(error: Exception) -> ApplicationError:
    """The failure of a step that must not be tried again."""
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)


def _read_only(error: Damaged | Missing) -> ApplicationError:
    """The failure of a step that met a slot which is not what was written."""
    conversation = (activity.info().workflow_id or "").removeprefix("conv-")
    told = read_only(conversation, error)
    return ApplicationError(told, type=type(error).__name__, non_retryable=True)


def later(error: ModelUnavailable) -> ApplicationError:
    """A failure that Temporal retries, when the provider says so."""
    after = timedelta(seconds=error.retry_after) if error.retry_after is not None else None
    return ApplicationError(str(error), error.code, type="ModelUnavailable", next_retry_delay=after)


def origin(part: str = "") -> Origin:
    """This step's name: the same on every attempt and queue, and never another step's.

    A step that appends more than once names each `part`.
    """
    info = activity.info()
    assert info.workflow_run_id is not None, "a step belongs to a workflow"
    name = info.activity_id.rstrip(AGAIN)
    name = f"{name} {part}" if part else name
    return Origin(run=info.workflow_run_id, activity=name)


def was_stopped() -> bool:
    """Whether a cancelled step was stopped on purpose: nobody will try it again."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def is_retry() -> bool:
    """Whether an earlier attempt may have done this step, or a part of it."""
    info = activity.info()
    return info.attempt > 1 or info.activity_id.endswith(AGAIN)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def digests(entries: list[Entry]) -> list[Digest]:
    return [digest(entry) for entry in entries]

"""The client for programs without an event loop of their own: scripts and notebooks.

Each client runs an event loop in a thread of its own, so that it works inside a running one too.
"""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial, update_wrapper
from types import FrameType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.events.sync_event_list import SyncEventList
from perdure.client.fork_handle import Fork
from perdure.client.http.client import HttpClient
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.settings.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

WAIT_INTERVAL = 0.2
"""Seconds after which a waiting thread looks for ^C, which some platforms do not deliver to it."""


class _Wrapper(Protocol):
    """An object that has an asynchronous one, and the thread of its event loop."""

    @property
    def wrapped(self) -> Any: ...
    @property
    def portal(self) -> BlockingPortal: ...


class BlockingMethod(Generic[P, R]):
    """A method that calls an asynchronous one of the same name, and waits for its result."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]  # for `help`

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: _Wrapper, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: _Wrapper | None, owner: type) -> Self | Callable[P, R]:
        if instance is None:
            return self
        method: Callable[P, Awaitable[R]] = getattr(instance.wrapped, self.method.__name__)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return wait_for(instance.portal, lambda: method(*args, **kwargs))

        return update_wrapper(call, self.method)


class BlockingIteration(Generic[P, R]):
    """A method that iterates over what an asynchronous one of the same name yields."""

    def __init__(self, method: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: _Wrapper, owner: type) -> Callable[P, Generator[R, None, None]]: ...
    def __get__(
        self, instance: _Wrapper | None, owner: type
    ) -> Self | Callable[P, Generator[R, None, None]]:
        if instance is None:
            return self
        method: Callable[P, AsyncIterator[R]] = getattr(instance.wrapped, self.method.__name__)

        def iterate(*args: P.args, **kwargs: P.kwargs) -> Generator[R, None, None]:
            items = method(*args, **kwargs)
            try:
                while True:
                    try:
                        yield wait_for(instance.portal, items.__anext__)
                    except StopAsyncIteration:
                        return
            finally:
                with suppress(RuntimeError):  # the client has been closed meanwhile
                    wait_for(instance.portal, items.aclose)  # type: ignore[attr-defined]

        return update_wrapper(iterate, self.method)


def wait_for(portal: BlockingPortal, call: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function in the thread of a loop; ^C stops it there and is raised here."""

    async def work() -> T:
        return await call()

    future: Future[T] = portal.start_task_soon(work)
    try:
        while True:
            try:
                return future.result(WAIT_INTERVAL)
            except TimeoutError:
                if future.done():
                    raise
    except BaseException:
        future.cancel()
        raise


@contextmanager
def _defer_interrupt() -> Iterator[None]:
    """Handle ^C after the block: anyio, interrupted while it starts a thread, waits for its end."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    interrupts: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *details: interrupts.append(details))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        handler(*interrupts[0])


class SyncConversation:
    """A conversation whose methods wait: those of `Conversation`, by the same names."""

    def __init__(self, wrapped: ConversationHandle, portal: BlockingPortal) -> None:
        self.wrapped = wrapped
        self.portal = portal
        self.id = wrapped.id

    send = BlockingMethod(Conversation.send)
    submit = BlockingMethod(Conversation.submit)
    result = BlockingMethod(Conversation.result)
    status = BlockingMethod(Conversation.status)
    state = BlockingMethod(Conversation.state)
    values = BlockingMethod(Conversation.values)
    read_values = BlockingMethod(Conversation.read_values)
    changes = BlockingMethod(Conversation.changes)
    pause = BlockingMethod(Conversation.pause)
    resume = BlockingMethod(Conversation.resume)
    interrupt = BlockingMethod(Conversation.interrupt)
    condense = BlockingMethod(Conversation.condense)
    close = BlockingMethod(Conversation.close)
    delete = BlockingMethod(Conversation.delete)
    describe = BlockingMethod(Conversation.describe)
    respond = BlockingMethod(Conversation.respond)
    signal = BlockingMethod(Conversation.signal)
    answer = BlockingMethod(Conversation.answer)
    configure = BlockingMethod(Conversation.configure)
    note = BlockingMethod(Conversation.note)
    grant = BlockingMethod(Conversation.grant)
    revoke = BlockingMethod(Conversation.revoke)
    grants = BlockingMethod(Conversation.grants)
    turn = BlockingIteration(Conversation.turn)
    text = BlockingIteration(Conversation.text)
    events = BlockingIteration(Conversation.events)
    statuses = BlockingIteration(Conversation.statuses)

    @cached_property
    def event_log(self) -> SyncEventList:
        """The events that are in the log, as a sequence."""
        return SyncEventList(self.wrapped.event_log, partial(wait_for, self.portal))


class _Starting(Generic[P]):
    """A method that waits for a conversation, and wraps it."""

    def __init__(
        self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Conversation]]
    ) -> None:
        self.method = BlockingMethod(method)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: SyncClient, owner: type) -> Callable[P, SyncConversation]: ...
    def __get__(
        self, instance: SyncClient | None, owner: type
    ) -> Self | Callable[P, SyncConversation]:
        if instance is None:
            return self
        wait = self.method.__get__(instance, owner)

        def call(*args: P.args, **kwargs: P.kwargs) -> SyncConversation:
            return SyncConversation(wait(*args, **kwargs), instance.portal)

        return update_wrapper(call, wait)


class SyncClient:
    """A client whose methods wait: those of `Client`, by the same names.

    It connects at once, as `Client.connect` does, and raises what that raises. A program may end
    without closing it.
    """

    portal: BlockingPortal
    wrapped: ConversationClient

    def __init__(self, settings: Settings | None = None) -> None:
        self._open(lambda: Client.connect(settings))

    def _open(self, connect: Callable[[], Awaitable[ConversationClient]]) -> None:
        """Start the thread of the event loop, and connect there."""
        with ExitStack() as stack:
            with _defer_interrupt():
                self.portal = stack.enter_context(start_blocking_portal(name="perdure"))
            self.wrapped = wait_for(self.portal, connect)
            stack.callback(wait_for, self.portal, self.wrapped.close)
            self._stack = stack.pop_all()
        atexit.register(self._stop_loop)  # what is dropped later waits for nothing

    start = _Starting(Client.start)
    list_conversations = BlockingMethod(Client.list_conversations)
    find_conversations = BlockingMethod(Client.find_conversations)
    list_shared = BlockingMethod(Client.list_shared)
    ask = BlockingMethod(Client.ask)
    put_secret = BlockingMethod(Client.put_secret)
    list_secrets = BlockingMethod(Client.list_secrets)
    remove_secret = BlockingMethod(Client.remove_secret)

    def conversation(self, conversation_id: str, owner: str | None = None) -> SyncConversation:
        """Return the handle of a conversation, existing or not. Raises Invalid for a bad id.

        `owner` is another user, who has granted access to it.
        """
        return SyncConversation(self.wrapped.conversation(conversation_id, owner), self.portal)

    def fork(
        self,
        conversation_id: str,
        at: int | None = None,
        model: str | None = None,
        owner: str | None = None,
    ) -> Fork[SyncConversation]:
        """Fork a conversation after slot `at`, by default the last one; see `Client.fork`."""
        forked = wait_for(self.portal, lambda: self.wrapped.fork(conversation_id, at, model, owner))
        child = SyncConversation(forked.conversation, self.portal)
        return Fork(child, forked.at, forked.state)

    def close(self) -> None:
        """Close the connections, and end the client's thread."""
        atexit.unregister(self._stop_loop)
        self._stack.close()

    def _stop_loop(self) -> None:
        self.portal.call(self.portal.stop, True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncHttpClient(SyncClient):
    """A client of a gateway whose methods wait: those of `HttpClient`, by the same names.

    It asks the gateway at once who the key belongs to, and raises what `HttpClient` raises.
    """

    def __init__(self, url: str, key: str, plain_http: bool = False) -> None:
        self._open(lambda: HttpClient(url, key, plain_http).__aenter__())

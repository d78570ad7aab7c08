"""Tasks that run beside the input of a chat."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from prompt_toolkit.application import Application


class SideTasks:
    """Tasks beside the input of an application, which an error that is not foreseen ends."""

    def __init__(self, app: Application[Any]) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    async def stop(self, but: asyncio.Task[None] | None) -> None:
        """Cancel all tasks but one, and wait for their ends and for its own."""
        for task in tuple(self._tasks):
            if task is not but:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._app.is_running and not self._app.is_done:
            self._app.exit(exception=error)

"""Worker processes side by side: `python -m perdure.operations.worker.processes N [OPTION …]`.

A worker is one Python process, which uses one core. The processes share the data folder and the
task queue, so that the steps of a conversation may run in any of them.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from time import monotonic

from perdure.embedded.process import build_child_command, describe_exit, request_status
from perdure.embedded.worker_command import WORKER_COMMAND
from perdure.operations.error_reports import EXIT_OK, EXIT_USAGE, EXPECTED_ERRORS, report_error
from perdure.operations.process import configure_logs, stop_signal
from perdure.operations.worker.options import WorkerOptions, parse_options

logger = logging.getLogger("perdure.worker")

STABLE_AFTER = 10.0
"""Seconds after which an end is no failure of the start."""

MAX_BACKOFF = 30.0
"""Seconds until the next start of a process that ends soon after each start."""


@dataclass(eq=False)
class Member:
    """A process of the worker; `listener` is the socket at which it answers probes."""

    name: str
    command: Sequence[str]
    listener: socket.socket | None = None
    has_answered: bool = field(default=False, init=False)
    """Whether it has answered since its last start."""

    async def request(self, path: str) -> int | None:
        """Request a path; return the HTTP status, or None without an answer."""
        assert self.listener is not None, "it is asked where there are probes"
        status = await request_status("GET", self.listener.getsockname()[1], path)
        self.has_answered |= status is not None
        return status


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def run_processes(
    count: int,
    command: Sequence[str] = WORKER_COMMAND,
    options: WorkerOptions | None = None,
) -> int:
    """Run `count` worker processes until SIGINT or SIGTERM; return the exit code.

    All end when one of them finds its configuration wrong, which no other start can mend. Raises
    PortTaken.
    """
    stop, options = stop_signal(), options or WorkerOptions()
    async with AsyncExitStack() as stack:
        members = [_make_member(nth, command, options, stack) for nth in range(count)]
        if options.health_port is not None:
            await _serve_probes(options.health_port, members, stop, stack)
        keepers = [asyncio.create_task(_keep_running(member, stop)) for member in members]
        try:
            for ended in asyncio.as_completed(keepers):
                if code := await ended:
                    return code
            return EXIT_OK
        finally:
            stop.set()
            await asyncio.wait(keepers)


def _make_member(
    nth: int, command: Sequence[str], options: WorkerOptions, stack: AsyncExitStack
) -> Member:
    name, listener = f"worker process {nth + 1}", None
    if options.health_port is not None:
        # It stays while the process is started again: a probe then waits, and is not refused.
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        options = replace(options, health_port=None, health_fd=listener.fileno())
    return Member(name, [*command, *options.as_arguments()], listener)


async def _serve_probes(
    port: int, members: Sequence[Member], stop: asyncio.Event, stack: AsyncExitStack
) -> None:
    """Answer probes for all processes until the stack is closed. Raises PortTaken."""
    from perdure.operations.worker import probes  # a server, for those who want it

    async def find_unready() -> str | None:
        if stop.is_set():
            return "The workers drain: they take no new work."
        statuses = await asyncio.gather(*(member.request("/readyz") for member in members))
        late = [it.name for it, status in zip(members, statuses, strict=True) if status != 200]
        return f"Not ready: {', '.join(late)}." if late else None

    async def find_dead() -> str | None:
        watched = [member for member in members if member.has_answered]
        statuses = await asyncio.gather(*(member.request("/livez") for member in watched))
        dead = [it.name for it, status in zip(watched, statuses, strict=True) if status is None]
        return f"No answer: {', '.join(dead)}." if dead else None

    listener = stack.enter_context(probes.listen(port))
    await stack.enter_async_context(probes.serve_probes(listener, find_unready, find_dead))
    logger.info("the workers answer probes at port %d", listener.getsockname()[1])


async def _keep_running(member: Member, stop: asyncio.Event) -> int:
    """Start the process again whenever it ends; return an exit code that is final."""
    backoff = 0.0
    while not stop.is_set():
        started = monotonic()
        code = await _run_process(member, stop)
        if stop.is_set() or code == EXIT_USAGE:
            return 0 if stop.is_set() else code
        is_stable = monotonic() - started >= STABLE_AFTER
        backoff = 0.0 if is_stable else min(MAX_BACKOFF, 2 * backoff or 0.1)
        logger.warning(
            "%s ended (%s) and is started again in %g s", member.name, describe_exit(code), backoff
        )
        await _wait(stop, backoff)
    return EXIT_OK


async def _run_process(member: Member, stop: asyncio.Event) -> int:
    """Run a process to its end, which `stop` brings about; return its exit code."""
    member.has_answered = False
    process = await asyncio.create_subprocess_exec(
        *build_child_command(list(member.command)),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[member.listener.fileno()] if member.listener else [],
    )
    end, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
    await asyncio.wait({end, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not end.done():
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    return await end


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def main() -> None:
    """Run the processes; 0 stands for one for each core."""
    # Settings are for the processes to read, which say what is wrong with them.
    is_text = os.environ.get("PERDURE_LOG_FORMAT") == "text"
    configure_logs(log_format="text" if is_text else "auto")
    options = parse_options(sys.argv[2:])
    try:
        sys.exit(asyncio.run(run_processes(int(sys.argv[1]) or count_cores(), options=options)))
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        print(f"perdure worker: {failure.message} {failure.hint}".rstrip(), file=sys.stderr)
        sys.exit(failure.exit_code)


if __name__ == "__main__":
    main()

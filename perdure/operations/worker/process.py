"""The process of a worker: its logs, store, sandbox, queue, version, bytecode cache and exit."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import temporalio.client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import PollerBehaviorSimpleMaximum, WorkerDeploymentConfig

from perdure.client.client import Client
from perdure.errors import Invalid
from perdure.operations.error_reports import EXPECTED_ERRORS, report_error
from perdure.operations.process import configure_logs
from perdure.operations.process_exit import exit_process
from perdure.operations.step_logs import name_conversations
from perdure.operations.worker.options import KINDS, WorkerOptions
from perdure.operations.worker.readiness import WorkerReadiness
from perdure.sandbox import choice
from perdure.sandbox.sandbox import Sandbox, SandboxUnusable
from perdure.secrets.masking import MaskingFilter
from perdure.secrets.registry import Secrets
from perdure.settings.settings import Settings, load_settings
from perdure.storage.errors import UnsafeStore
from perdure.storage.probe import probe_again
from perdure.storage.store import Store
from perdure.temporal.build_id import make_build_id

logger = logging.getLogger("perdure.worker")

WORKFLOW_THREADS = 4
"""Workflow tasks are Python and share one core: more of them slow each other down until all time
out and start again."""

WORKFLOW_POLLS = 20
"""The polls of a worker for workflow tasks. A task for which none waits is written to Temporal's
database, read from there and deleted: a fifth of what a step costs where many are at work."""


def workflow_options() -> dict[str, Any]:
    """Build the further options of a worker that runs workflows."""
    return {
        # A workflow waits so long for the worker that has it in its cache.
        "sticky_queue_schedule_to_start_timeout": timedelta(seconds=2),
        "workflow_task_executor": ThreadPoolExecutor(WORKFLOW_THREADS, "workflow"),
        "workflow_task_poller_behavior": PollerBehaviorSimpleMaximum(WORKFLOW_POLLS),
    }


def time_options(options: WorkerOptions) -> dict[str, Any]:
    """Build the times of every Temporal worker, as the process was told."""
    interval = timedelta(seconds=options.heartbeat_interval)
    return {
        "graceful_shutdown_timeout": timedelta(seconds=options.step_grace),
        "max_heartbeat_throttle_interval": interval,
        "default_heartbeat_throttle_interval": interval,
    }


def run_process(run: Callable[[Settings], Coroutine[Any, Any, int]]) -> None:
    """Run a worker by the settings of the environment, and exit the process with its exit code."""
    try:
        settings = load_settings()
        configure_logs(log_format=settings.log_format)
        name_conversations()
        with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
            code = runner.run(run(settings))
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        print(f"perdure worker: {failure.message} {failure.hint}".rstrip(), file=sys.stderr)
        exit_process(failure.exit_code)
    exit_process(code)


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's, which saves a twentieth of a worker's CPU; None where it is missing."""
    try:
        import uvloop  # no wheels for Windows
    except ImportError:
        return None
    return uvloop.new_event_loop


def cache_bytecode(folder: Path) -> None:
    """Cache bytecode even if Python is told not to, as in many containers.

    Temporal's sandbox loads our code anew for every workflow; half of that would be compiling.
    """
    if sys.dont_write_bytecode:
        sys.pycache_prefix = str(folder)
        sys.dont_write_bytecode = False


def log_start(settings: Settings, options: WorkerOptions) -> None:
    build = f", as version {settings.build_id!r}" if settings.build_id else ""
    kinds = "" if options.kinds == set(KINDS) else f" for {' and '.join(sorted(options.kinds))}"
    logger.info("worker %d polls %r%s%s", os.getpid(), settings.task_queue, kinds, build)


async def serve_worker_probes(
    options: WorkerOptions, readiness: WorkerReadiness, stack: AsyncExitStack
) -> None:
    """Answer probes until the stack is closed, if the options ask for it. Raises PortTaken."""
    if options.health_port is None and options.health_fd is None:
        return
    from perdure.operations.worker import probes  # a server, for those who want it

    if options.health_fd is not None:
        listener = socket.socket(fileno=options.health_fd)
    else:
        listener = probes.listen(options.health_port or 0)
    stack.enter_context(listener)
    serving = probes.serve_probes(listener, readiness.find_reason, describe=readiness.describe)
    await stack.enter_async_context(serving)
    if options.health_fd is None:
        logger.info("worker %d answers probes at port %d", os.getpid(), listener.getsockname()[1])


def build_own_client(
    temporal: temporalio.client.Client, store: Store, settings: Settings
) -> Client:
    """Build the client by which a worker begins turns and looks at conversations."""
    return Client(
        temporal,
        store,
        settings.user,
        settings.task_queue,
        settings.search_attributes,
        settings.store,
        limited_models=settings.model_rates,
    )


def mask_logs(secrets: Secrets) -> None:
    """Mask the values of secrets in all later log lines of this process."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(MaskingFilter(secrets))


async def probe_configured_store(store: Store, settings: Settings) -> None:
    """Probe the store, with races if it was not lately. Raises UnsafeStore, StoreError."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    await probe_again(store, f"{settings.store} {endpoint}", settings.data / "probed")


async def check_store(store: Store, settings: Settings) -> None:
    """Check that the store has conditional writes. Raises UnsafeStore unless allowed."""
    try:
        await probe_configured_store(store, settings)
    except UnsafeStore as error:
        if not settings.unsafe_store:
            raise
        logger.warning("UNSAFE STORE, used because PERDURE_UNSAFE_STORE is set: %s", error)


def choose_configured_sandbox(settings: Settings) -> choice.Choice:
    """Choose the configured sandbox, tried in the workspaces' folder. Raises Invalid, OSError."""
    reads = [path.expanduser().absolute() for path in settings.sandbox_reads]
    if missing := [path for path in reads if not path.exists()]:
        raise Invalid(f"There is no {missing[0]}.", "Mend PERDURE_SANDBOX_READS.")
    workspaces = settings.data.absolute() / "workspaces"
    try:
        return choice.choose_sandbox(settings.sandbox, workspaces, reads)
    except SandboxUnusable as error:
        raise Invalid(str(error)) from error


def choose_sandbox(settings: Settings) -> Sandbox:
    """Choose the sandbox of commands, and log the choice. Raises Invalid."""
    chosen = choose_configured_sandbox(settings)
    for sentence in chosen.rejections:
        logger.warning(sentence)
    logger.info("commands run in the sandbox %s", chosen.description)
    return chosen.sandbox


def version_options(task_queue: str, build_id: str | None) -> dict[str, Any]:
    """Build the options by which Temporal knows the version of a worker.

    Without a `build_id` it is that of perdure, with its revision, which most events of a history
    then name. The SDK's own choice is a hash of all loaded modules: longer, and half a second of
    work.
    """
    if build_id is None:
        return {"build_id": make_build_id(version("perdure"))}
    return {
        "deployment_config": WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(deployment_name=task_queue, build_id=build_id),
            use_worker_versioning=True,
            default_versioning_behavior=VersioningBehavior.PINNED,
        )
    }


def workspace_queue(workspaces: Path, task_queue: str) -> str:
    """Return the task queue of the workers that share this folder."""
    workspaces.mkdir(parents=True, exist_ok=True)
    name = workspaces / ".home"
    draft = workspaces / f".home.{uuid4().hex}"
    draft.write_text(uuid4().hex)
    with suppress(FileExistsError):
        name.hardlink_to(draft)
    draft.unlink()
    return f"{task_queue}@{name.read_text()}"

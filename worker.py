"""Runs a worker: the one place where storage, models, tools and workflows meet."""

import asyncio
import logging
import os
import signal
import sys
from datetime import timedelta

import temporalio.client
from temporalio.worker import Worker

from activities.ask import AskActivities
from activities.condense import CondenseActivities
from activities.delegate import DelegateActivities
from activities.llm import ModelActivities
from activities.log import LogActivities
from activities.title import TitleActivities
from activities.tool import ToolActivities
from activities.world import World
from cli.failures import FORESEEN, failure_of
from client.connect import connect
from client.store import store_of
from models.models import Models
from settings.settings import Settings, load
from storage.errors import UnsafeStore
from storage.probe import probe_again
from storage.store import Store
from tools.terminal import SESSIONS
from workflows.ask import Asking
from workflows.conversation import Conversation
from workflows.sandbox import Sandbox

logger = logging.getLogger("perdure.worker")

STICKY = timedelta(seconds=2)
"""How long a workflow waits for the worker that knows it before any other may take it."""

BEAT = timedelta(seconds=0.25)
"""How often a step's heartbeat really goes out: as long as an interrupt takes to arrive."""

GRACE = timedelta(seconds=5)
"""What running steps get to end by themselves when the worker is asked to stop."""


def build_worker(client: temporalio.client.Client, task_queue: str, world: World) -> Worker:
    """A worker for every step of a conversation. The sandbox is on, and sees all of our code."""
    log, llm, tool = LogActivities(world), ModelActivities(world), ToolActivities(world)
    delegate = DelegateActivities(world)
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Conversation, Asking],
        activities=[
            log.open,
            log.append,
            log.prepare,
            log.save,
            log.close,
            llm.chat,
            CondenseActivities(world).condense,
            TitleActivities(world).title,
            AskActivities(world).ask,
            tool.call,
            tool.settle,
            delegate.delegate,
            delegate.report,
        ],
        workflow_runner=Sandbox(),
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_heartbeat_throttle_interval=BEAT,
        default_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=GRACE,
    )


async def run(settings: Settings) -> None:
    """Work until the process is asked to stop.

    Raises ClientError where Temporal, StoreError where the store cannot be used.
    """
    store = store_of(settings)
    await check(store, settings)
    client = await connect()
    world = World(store, Models(), settings.data / "workspaces")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    try:
        async with build_worker(client, settings.task_queue, world):
            logger.info("worker %d polls %r", os.getpid(), settings.task_queue)
            await stop.wait()
    finally:
        await world.mcp.close()
        await SESSIONS.close()


async def check(store: Store, settings: Settings) -> None:
    """Refuse a store that cannot keep a log exactly once, unless the operator insists."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    try:
        await probe_again(store, f"{settings.store} {endpoint}", settings.data / "probed")
    except UnsafeStore as error:
        if not settings.unsafe_store:
            raise
        logger.warning("UNSAFE STORE, used because PERDURE_UNSAFE_STORE is set: %s", error)


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logger.setLevel(logging.INFO)
    try:
        asyncio.run(run(load()))
    except FORESEEN as error:
        failure = failure_of(error)
        print(f"perdure worker: {failure.message} {failure.hint}".rstrip(), file=sys.stderr)
        sys.exit(failure.exit_code)


if __name__ == "__main__":
    main()

"""Runs a worker: the one place where storage, models, tools and workflows meet."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import temporalio.client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Worker, WorkerDeploymentConfig

from activities.ask import AskActivities
from activities.batch import BatchActivities
from activities.condense import CondenseActivities
from activities.delegate import DelegateActivities
from activities.lanes import Lanes
from activities.llm import ModelActivities
from activities.log import LogActivities
from activities.masking import MaskingFilter, MaskingInterceptor
from activities.samples import SampleActivities
from activities.title import TitleActivities
from activities.tool import ToolActivities
from activities.world import World
from cli.ending import end
from cli.failures import FORESEEN, OK, failure_of
from client.client import Client
from client.connect import connect
from client.store import store_of
from client.walls import sandbox_of
from client.watchdog import Watchdog
from models.models import Models
from sandbox.sandbox import Sandbox as Walls
from settings.settings import Settings, load
from storage.errors import UnsafeStore
from storage.probe import probe_again
from storage.store import Store
from tools.secrets.registry import Secrets
from tools.terminal import SESSIONS
from workflows.ask import Asking
from workflows.batch import Batch
from workflows.conversation import Conversation
from workflows.sandbox import Sandbox

logger = logging.getLogger("perdure.worker")

AT_ONCE = 4
"""Workflow tasks that are worked on at a time. They are Python, and share one core: each makes all
the others slower, until none is done before it times out, and all begin again."""

STICKY = timedelta(seconds=2)
"""How long a workflow waits for the worker that knows it before any other may take it."""

BEAT = timedelta(seconds=0.25)
"""How often a step's heartbeat really goes out: as long as an interrupt takes to arrive."""

GRACE = timedelta(seconds=5)
"""What running steps get to end by themselves when the worker is asked to stop."""


def build_worker(
    client: temporalio.client.Client,
    task_queue: str,
    world: World,
    watchdog: Watchdog | None = None,
    build_id: str | None = None,
) -> Worker:
    """A worker for every step of a conversation. The sandbox is on, and sees all of our code.

    With a `build_id`, what it begins it also ends, unless it hands over to the current version.
    """
    log, llm, tool = LogActivities(world), ModelActivities(world), ToolActivities(world)
    delegate = DelegateActivities(world)
    sample, batch = SampleActivities(world), BatchActivities(world, client)
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Conversation, Asking, Batch],
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
            sample.set_up,
            sample.say,
            sample.finish,
            sample.rescore,
            batch.page,
            batch.survey,
            batch.follow,
            batch.lost,
        ],
        workflow_runner=Sandbox(watchdog.suspect if watchdog else None),
        deployment_config=version_of(task_queue, build_id) if build_id else None,
        interceptors=[MaskingInterceptor(world.secrets), *([watchdog] if watchdog else [])],
        max_concurrent_workflow_tasks=AT_ONCE,
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_heartbeat_throttle_interval=BEAT,
        default_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=GRACE,
    )


def build_worker_at_home(
    client: temporalio.client.Client, world: World, watchdog: Watchdog | None = None
) -> Worker:
    """A worker for the steps of the conversations whose files are on this machine."""
    assert world.home is not None, "without a home, nobody asks for it"
    tool, delegate, sample = (
        ToolActivities(world),
        DelegateActivities(world),
        SampleActivities(world),
    )
    return Worker(
        client,
        task_queue=world.home,
        activities=[tool.call, delegate.delegate, delegate.report, sample.finish],
        interceptors=[MaskingInterceptor(world.secrets), *([watchdog] if watchdog else [])],
        max_heartbeat_throttle_interval=BEAT,
        default_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=GRACE,
    )


def build_worker_of_model(
    model: str, client: temporalio.client.Client, world: World, watchdog: Watchdog | None = None
) -> Worker:
    """A worker for the steps that ask a limited model.

    Temporal keeps to its rate among all workers: where they differ, the last one to ask tells it.
    """
    return Worker(
        client,
        task_queue=world.lanes.queues[model],
        activities=[
            ModelActivities(world).chat,
            CondenseActivities(world).condense,
            TitleActivities(world).title,
        ],
        max_task_queue_activities_per_second=world.lanes.rates[model] / 60,
        interceptors=[MaskingInterceptor(world.secrets), *([watchdog] if watchdog else [])],
        max_heartbeat_throttle_interval=BEAT,
        default_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=GRACE,
    )


@asynccontextmanager
async def asking_limited_models(
    client: temporalio.client.Client, world: World, watchdog: Watchdog | None = None
) -> AsyncIterator[None]:
    """Work for each limited model."""
    async with AsyncExitStack() as workers:
        for model, rate in world.lanes.rates.items():
            logger.info("%s gets %g calls a minute at most", model, rate)
            worker = build_worker_of_model(model, client, world, watchdog)
            await workers.enter_async_context(worker)
        yield


def version_of(task_queue: str, build_id: str) -> WorkerDeploymentConfig:
    """The version of the workers on this queue whose code has this name."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=task_queue, build_id=build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


def home_of(workspaces: Path, task_queue: str) -> str:
    """The queue of the workers that have this folder on their disk."""
    workspaces.mkdir(parents=True, exist_ok=True)
    name = workspaces / ".home"
    draft = workspaces / f".home.{uuid4().hex}"
    draft.write_text(uuid4().hex)
    with suppress(FileExistsError):
        name.hardlink_to(draft)
    draft.unlink()
    return f"{task_queue}@{name.read_text()}"


async def run(settings: Settings) -> None:
    """Work until the process is asked to stop.

    Raises ClientError where Temporal, StoreError where the store cannot be used.
    """
    keep_bytecode(settings.data / "bytecode")
    store = store_of(settings)
    await check(store, settings)
    client = await connect()
    secrets = Secrets(settings.secrets)
    guard_logs(secrets)
    workspaces = settings.data / "workspaces"
    home = home_of(workspaces, settings.task_queue)
    sandbox = walls(settings)
    world = World(
        store,
        Models(),
        workspaces,
        home=home,
        secrets=secrets,
        sandbox=sandbox,
        save_llm_messages=settings.save_llm_messages,
        lanes=Lanes(settings.task_queue, settings.model_rates),
    )
    known = settings.search_attributes
    watchdog = Watchdog(Client(client, store, settings.user, settings.task_queue, known))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    try:
        async with (
            build_worker(client, settings.task_queue, world, watchdog, settings.build_id),
            build_worker_at_home(client, world, watchdog),
            asking_limited_models(client, world, watchdog),
            watchdog.watching(),
        ):
            logger.info("worker %d polls %s", os.getpid(), queue_of(settings))
            await stop.wait()
    finally:
        await world.mcp.close()
        await SESSIONS.close()


def keep_bytecode(folder: Path) -> None:
    """Compile our code once, also where Python is told to keep none of it, as in many containers.

    Temporal's sandbox loads it anew for every workflow: half of that would be the compiling.
    """
    if sys.dont_write_bytecode:
        sys.pycache_prefix = str(folder)
        sys.dont_write_bytecode = False


def queue_of(settings: Settings) -> str:
    """What is polled, and as which version of the code."""
    version = f", as version {settings.build_id!r}" if settings.build_id else ""
    return f"{settings.task_queue!r}{version}"


async def check(store: Store, settings: Settings) -> None:
    """Refuse a store that cannot keep a log exactly once, unless the operator insists."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    try:
        await probe_again(store, f"{settings.store} {endpoint}", settings.data / "probed")
    except UnsafeStore as error:
        if not settings.unsafe_store:
            raise
        logger.warning("UNSAFE STORE, used because PERDURE_UNSAFE_STORE is set: %s", error)


def walls(settings: Settings) -> Walls:
    """The sandbox of all commands, which the operator is told of. Raises Invalid."""
    choice = sandbox_of(settings)
    for sentence in choice.passed_over:
        logger.warning(sentence)
    logger.info("commands run in the sandbox %s", choice.told)
    return choice.sandbox


def guard_logs(secrets: Secrets) -> None:
    """Keep the values of secrets out of all that this process logs from here on."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(MaskingFilter(secrets))


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logger.setLevel(logging.INFO)
    try:
        asyncio.run(run(load()))
    except FORESEEN as error:
        failure = failure_of(error)
        print(f"perdure worker: {failure.message} {failure.hint}".rstrip(), file=sys.stderr)
        end(failure.exit_code)
    end(OK)


if __name__ == "__main__":
    main()

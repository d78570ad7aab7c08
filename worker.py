"""The wiring of a worker: storage, models, tools, activities and workflows."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

if __name__ == "__main__":
    gc.disable()  # what is imported below stays: looking for garbage among it takes 40 ms

import temporalio.client
from temporalio.worker import Worker

from perdure.activities import registry
from perdure.activities.support.model_queues import RateLimitedQueues
from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.store import open_configured_store
from perdure.models.router import ModelRouter
from perdure.operations import worker_process
from perdure.operations.process import stop_signal
from perdure.operations.watchdog import Watchdog
from perdure.references import add_user_folder
from perdure.secrets.masking import MaskingInterceptor
from perdure.secrets.registry import Secrets
from perdure.settings.settings import Settings
from perdure.storage.store import Store
from perdure.temporal.connect import connect
from perdure.tools.terminal import SESSIONS
from perdure.user_modules import USER_MODULES
from perdure.workflows.ask import AskWorkflow
from perdure.workflows.batch.workflow import Batch
from perdure.workflows.conversation import Conversation
from perdure.workflows.discussion.workflow import Discussion
from perdure.workflows.sandbox import WorkflowSandbox
from perdure.workflows.sessions import Sessions


def build_worker(
    client: temporalio.client.Client,
    task_queue: str,
    world: Resources,
    watchdog: Watchdog | None = None,
    build_id: str | None = None,
) -> Worker:
    """Build the worker for workflows and steps; the workflow sandbox is on for all of our code.

    With a `build_id`, workflows stay on that version until they move to the current one.
    """
    return _build(
        client,
        task_queue,
        registry.all_activities(world, client),
        world,
        watchdog,
        build_id,
        workflows=[Conversation, AskWorkflow, Batch, Discussion, Sessions],
        workflow_runner=WorkflowSandbox(watchdog.suspect if watchdog else None),
        **worker_process.WORKFLOW_OPTIONS,
    )


def build_workspace_worker(
    client: temporalio.client.Client, world: Resources, watchdog: Watchdog | None = None
) -> Worker:
    """Build the worker for steps that need workspaces on this machine."""
    assert world.home is not None, "the resources of a workspace worker have a home"
    return _build(client, world.home, registry.workspace_activities(world), world, watchdog)


@asynccontextmanager
async def run_model_workers(
    client: temporalio.client.Client, world: Resources, watchdog: Watchdog | None = None
) -> AsyncIterator[None]:
    """Run a worker for the steps of each rate-limited model while inside.

    Temporal enforces a rate over all workers; if they differ, the last poll sets it.
    """
    queues = world.model_queues
    async with AsyncExitStack() as workers:
        for model, rate in queues.rates.items():
            worker_process.logger.info("%s gets %g calls a minute at most", model, rate)
            activities, limit = registry.model_activities(world), rate / 60
            options: dict[str, Any] = {"max_task_queue_activities_per_second": limit}
            worker = _build(client, queues.queues[model], activities, world, watchdog, **options)
            await workers.enter_async_context(worker)
        yield


def _build(
    client: temporalio.client.Client,
    task_queue: str,
    activities: Sequence[registry.Activity],
    world: Resources,
    watchdog: Watchdog | None,
    build_id: str | None = None,
    **options: Any,
) -> Worker:
    options |= worker_process.WORKER_OPTIONS | worker_process.version_options(task_queue, build_id)
    interceptors = [MaskingInterceptor(world.secrets), *([watchdog] if watchdog else [])]
    return Worker(
        client, task_queue=task_queue, activities=activities, interceptors=interceptors, **options
    )


def _build_resources(
    settings: Settings, store: Store, models: ModelRouter, secrets: Secrets
) -> Resources:
    workspaces = settings.data / "workspaces"
    return Resources(
        store,
        models,
        workspaces,
        home=worker_process.workspace_queue(workspaces, settings.task_queue),
        secrets=secrets,
        sandbox=worker_process.choose_sandbox(settings),
        save_llm_messages=settings.save_llm_messages,
        model_queues=RateLimitedQueues(settings.task_queue, settings.model_rates),
    )


async def run(settings: Settings) -> None:
    """Run the workers until SIGINT or SIGTERM.

    Raises ClientError if Temporal is unusable, StoreError if the store is.
    """
    if settings.code is not None:
        add_user_folder(settings.code)
    USER_MODULES.accepts_client_folders = settings.client_code
    worker_process.cache_bytecode(settings.data / "bytecode")
    store = open_configured_store(settings)
    await worker_process.check_store(store, settings)
    client = await connect(payload_keys=settings.payload_keys)
    secrets = Secrets(settings.secrets)
    worker_process.mask_logs(secrets)
    models, queue = ModelRouter(direct=settings.direct_models), settings.task_queue
    world = _build_resources(settings, store, models, secrets)
    watchdog = Watchdog(Client(client, store, settings.user, queue, settings.search_attributes))
    stop = stop_signal()
    try:
        async with (
            build_worker(client, queue, world, watchdog, settings.build_id),
            build_workspace_worker(client, world, watchdog),
            run_model_workers(client, world, watchdog),
            watchdog.watch(),
        ):
            worker_process.log_start(settings)
            preload = asyncio.create_task(models.preload(settings.model))
            await stop.wait()
            preload.cancel()
    finally:
        await world.mcp.close()
        await SESSIONS.close()


def main() -> None:
    worker_process.run_process(run)


if __name__ == "__main__":
    gc.freeze()  # every full collection would visit all modules anew
    gc.enable()
    main()

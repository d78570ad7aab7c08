"""The wiring of a worker: storage, models, tools, activities and workflows."""

import asyncio
import gc
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    gc.disable()  # what is imported below stays: looking for garbage among it takes 40 ms

import temporalio.client
from temporalio.worker import Interceptor, Worker

from perdure.activities import registry
from perdure.activities.support.clone_limits import CloneLimits
from perdure.activities.support.resources import Resources
from perdure.activities.support.step_queues import StepQueues
from perdure.activities.support.task_reader import TaskReader
from perdure.agent.loop.model_queues import llm_queue_name, tools_queue_name
from perdure.client.client import Client
from perdure.client.memory.service import open_memories
from perdure.client.store import open_configured_store
from perdure.models.router import ModelRouter
from perdure.operations.process import stop_signal
from perdure.operations.schedules import ScheduleActivities
from perdure.operations.watchdog import Watchdog
from perdure.operations.webhooks import WebhookActivities, read_patience
from perdure.operations.worker import process
from perdure.operations.worker.drain import work_until
from perdure.operations.worker.memory_limit import check_limit
from perdure.operations.worker.options import WorkerKind, WorkerOptions, parse_options
from perdure.operations.worker.readiness import WorkerReadiness
from perdure.operations.worker.slots import (
    MAX_COMMON_STEPS,
    MAX_STEPS,
    LoadInterceptor,
    ProcessSlots,
    WaitingModel,
)
from perdure.references import add_user_folder
from perdure.secrets.masking import MaskingInterceptor
from perdure.secrets.registry import Secrets
from perdure.secrets.vault import build_key_ring
from perdure.settings.settings import Settings
from perdure.storage.store import Store
from perdure.telemetry.start import start_configured_telemetry
from perdure.temporal.connect import connect
from perdure.temporal.payload_visits import leave_out_visits
from perdure.temporal.worker_load import WorkerLoad
from perdure.tools.terminal import SESSIONS
from perdure.user_modules import USER_MODULES
from perdure.webhooks.networks import parse_networks
from perdure.workflows.actor import ActorReader
from perdure.workflows.ask import AskWorkflow
from perdure.workflows.batch.workflow import Batch
from perdure.workflows.conversation import Conversation
from perdure.workflows.delivery import Delivery
from perdure.workflows.discussion.workflow import Discussion
from perdure.workflows.firing import Firing
from perdure.workflows.sandbox import WorkflowSandbox
from perdure.workflows.sessions import Sessions

if TYPE_CHECKING:
    from perdure.telemetry.telemetry import Telemetry

DEFAULT_OPTIONS = WorkerOptions()


def build_worker(
    client: temporalio.client.Client,
    task_queue: str,
    world: Resources,
    watchdog: Watchdog | None = None,
    build_id: str | None = None,
    observers: Sequence[Interceptor] = (),
    own_client: Client | None = None,
    options: WorkerOptions = DEFAULT_OPTIONS,
    slots: ProcessSlots | None = None,
) -> Worker:
    """Build the worker for workflows and steps; the workflow sandbox is on for all of our code.

    With a `build_id`, workflows stay on that version until they move to the current one. Schedules
    begin turns by `own_client`, which has the settings of the installation. The workers of one
    process share `slots`.
    """
    slots = slots or ProcessSlots()
    own_client = own_client or Client(client, world.store, task_queue=task_queue)
    schedules = ScheduleActivities(own_client)
    webhooks = WebhookActivities(own_client, world)
    return _build(
        client,
        task_queue,
        [*registry.all_activities(world, client), *schedules.all, *webhooks.all],
        world,
        watchdog,
        build_id,
        observers,
        options,
        slots,
        workflows=[Conversation, AskWorkflow, Batch, Delivery, Discussion, Firing, Sessions],
        max_steps=MAX_COMMON_STEPS,
        workflow_runner=WorkflowSandbox(watchdog.suspect if watchdog else None, slots.load),
        **process.workflow_options(),
    )


def build_workspace_worker(
    client: temporalio.client.Client,
    world: Resources,
    watchdog: Watchdog | None = None,
    observers: Sequence[Interceptor] = (),
    options: WorkerOptions = DEFAULT_OPTIONS,
    slots: ProcessSlots | None = None,
) -> Worker:
    """Build the worker for steps that need workspaces on this machine."""
    assert world.home is not None, "the resources of a workspace worker have a home"
    activities = registry.workspace_activities(world)
    more: dict[str, Any] = {"observers": observers, "options": options, "slots": slots}
    return _build(client, world.home, activities, world, watchdog, **more)


def build_model_workers(
    client: temporalio.client.Client,
    world: Resources,
    watchdog: Watchdog | None = None,
    observers: Sequence[Interceptor] = (),
    options: WorkerOptions = DEFAULT_OPTIONS,
    slots: ProcessSlots | None = None,
) -> list[Worker]:
    """Build a worker for the steps of each rate-limited model.

    Temporal enforces a rate over all workers; if they differ, the last poll sets it.
    """
    workers = []
    for model, rate in world.queues.rates.items():
        process.logger.info("%s gets %g calls a minute at most", model, rate)
        queue, limit = world.queues.queues[model], rate / 60
        activities = registry.model_activities(world)
        worker = _build(
            client,
            queue,
            activities,
            world,
            watchdog,
            observers=observers,
            options=options,
            slots=slots,
            max_task_queue_activities_per_second=limit,
        )
        workers.append(worker)
    return workers


def build_all_workers(
    client: temporalio.client.Client,
    settings: Settings,
    world: Resources,
    watchdog: Watchdog,
    observers: Sequence[Interceptor],
    options: WorkerOptions,
    load: WorkerLoad,
) -> list[Worker]:
    """Build the workers of all task queues from which a process takes its kinds of steps."""
    options = replace(options, heartbeat_interval=settings.heartbeat_interval)
    queue, workers, slots = settings.task_queue, [], ProcessSlots(load)
    if "workflows" in options.kinds:
        own_client, build_id = watchdog.client, settings.build_id
        parts = (world, watchdog, build_id, observers, own_client, options, slots)
        workers.append(build_worker(client, queue, *parts))
    rest: list[tuple[str, list[registry.Activity]]] = []
    if "model" in options.kinds:
        workers += build_model_workers(client, world, watchdog, observers, options, slots)
        rest.append((llm_queue_name(queue), registry.llm_activities(world)))
    if "tools" in options.kinds:
        workers.append(build_workspace_worker(client, world, watchdog, observers, options, slots))
        rest.append((tools_queue_name(queue), registry.tool_activities(world)))
    more: dict[str, Any] = {"observers": observers, "options": options, "slots": slots}
    return workers + [_build(client, *each, world, watchdog, **more) for each in rest]


def _build(
    client: temporalio.client.Client,
    task_queue: str,
    activities: Sequence[registry.Activity],
    world: Resources,
    watchdog: Watchdog | None,
    build_id: str | None = None,
    observers: Sequence[Interceptor] = (),
    options: WorkerOptions = DEFAULT_OPTIONS,
    slots: ProcessSlots | None = None,
    max_steps: int | None = None,
    **more: Any,
) -> Worker:
    leave_out_visits()
    slots = slots or ProcessSlots()
    slots.load.queues.add(task_queue)
    more |= process.time_options(options)
    more["tuner"] = slots.make_tuner(options.concurrency or max_steps or MAX_STEPS)
    more |= process.version_options(task_queue, build_id)
    interceptors = [
        TaskReader(),
        MaskingInterceptor(world.secrets_of_step),
        ActorReader(),
        LoadInterceptor(slots.load),
        *([watchdog] if watchdog else []),
        *observers,
    ]
    return Worker(
        client, task_queue=task_queue, activities=activities, interceptors=interceptors, **more
    )


def _build_resources(
    settings: Settings,
    store: Store,
    models: ModelRouter,
    secrets: Secrets,
    telemetry: "Telemetry | None",
    kinds: frozenset[WorkerKind],
) -> Resources:
    workspaces, model = settings.data / "workspaces", WaitingModel(models)
    return Resources(
        telemetry.observe_store(store) if telemetry else store,
        telemetry.observe_model(model) if telemetry else model,
        workspaces,
        home=process.workspace_queue(workspaces, settings.task_queue),
        secrets=secrets,
        secret_keys=build_key_ring(settings.secret_keys),
        sandbox=process.choose_sandbox(settings),
        clone_limits=CloneLimits(settings.repository_bytes, settings.repository_timeout),
        save_llm_messages=settings.save_llm_messages,
        app_writers=settings.app_writers,
        webhook_networks=parse_networks(settings.webhook_networks),
        webhook_patience=read_patience(settings),
        queues=StepQueues(
            settings.task_queue, settings.model_rates, "model" in kinds, "tools" in kinds
        ),
        memories=open_memories(settings.memory, store),
    )


async def run(settings: Settings, options: WorkerOptions = DEFAULT_OPTIONS) -> int:
    """Run the workers until SIGINT or SIGTERM, and drain them; return the exit code.

    Raises ClientError if Temporal is unusable, StoreError if the store is.
    """
    stop, readiness = stop_signal(), WorkerReadiness()
    async with AsyncExitStack() as probes:
        await process.serve_worker_probes(options, readiness, probes)
        return await _run(settings, options, stop, readiness)


async def _run(
    settings: Settings, options: WorkerOptions, stop: asyncio.Event, readiness: WorkerReadiness
) -> int:
    if settings.code is not None:
        add_user_folder(settings.code)
    USER_MODULES.accepts_client_folders = settings.client_code
    process.cache_bytecode(settings.data / "bytecode")
    store = open_configured_store(settings)
    await process.check_store(store, settings)
    telemetry = start_configured_telemetry(settings.metrics_address)
    runtime = telemetry.runtime if telemetry else None
    client = await connect(payload_keys=settings.payload_keys, runtime=runtime)
    readiness.store, readiness.temporal = store, client
    secrets, models = Secrets(settings.secrets), ModelRouter(direct=settings.direct_models)
    world = _build_resources(settings, store, models, secrets, telemetry, options.kinds)
    observers = telemetry.interceptors(world.log, world.mask_of) if telemetry else ()
    process.mask_logs(world.secrets_by_user.everyone)
    own_client = process.build_own_client(client, store, settings)
    watchdog = Watchdog(own_client, replace_after=settings.replace_after)
    parts = (world, watchdog, observers, options, readiness.load)
    workers = build_all_workers(client, settings, *parts)
    if options.max_memory is not None:
        check_limit(options.max_memory)
    try:
        async with (
            watchdog.watch() if "workflows" in options.kinds else nullcontext(),
            telemetry.count(client, settings.task_queue) if telemetry else nullcontext(),
        ):
            process.log_start(settings, options)
            preload = asyncio.create_task(models.preload(settings.model))
            try:
                return await work_until(stop, workers, readiness, options)
            finally:
                preload.cancel()
    finally:
        await world.list_notes.flush()
        await world.mcp.close()
        await SESSIONS.close()
        if telemetry is not None:
            await asyncio.to_thread(telemetry.close)


def main(options: WorkerOptions = DEFAULT_OPTIONS) -> None:
    process.run_process(partial(run, options=options))


if __name__ == "__main__":
    gc.freeze()  # every full collection would visit all modules anew
    gc.enable()
    main(parse_options(sys.argv[1:]))

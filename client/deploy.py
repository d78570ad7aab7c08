"""Versions of the workers' code, and the one under which conversations begin and go on."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.deployment.v1 import (
    RoutingConfig,
    WorkerDeploymentInfo,
    WorkerDeploymentVersion,
)
from temporalio.api.enums.v1 import (
    RoutingConfigUpdateState,
    TaskQueueType,
    WorkerDeploymentVersionStatus,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from client.errors import Invalid, TimedOut, Unreachable

WAIT = 30.0
"""Seconds for a version's workers to be known, and for all to know which version is current."""

EVERY = 0.1

LOST = 5.0
"""Seconds after which Temporal may have lost the news that all queues know which one it is.

It does now and then (temporalio/temporal#11842): its deployment then says for ever that it is at
it, while the queues go by it. So they are asked themselves.
"""

SILENT = timedelta(seconds=90)
"""How long ago a worker may have asked for work: it asks again every minute."""

NOT_YET = (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION)
"""What Temporal answers where a version's workers have not all come, or never will."""

SPREADING = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS


@dataclass(frozen=True)
class Version:
    """A version of the code that Temporal knows of.

    `status` is Temporal's own: conversations begin under the one that is `current`, and `percent`
    of them under one that is `ramping`; some go on under one that is `draining`, none under one
    that is `drained`. `workers` are those that have lately asked for work.
    """

    build_id: str
    status: str
    percent: float | None
    workers: tuple[str, ...]


async def versions(temporal: Client, task_queue: str) -> list[Version]:
    """The versions of the workers on a queue, the newest first. Raises Unreachable."""
    info = await _deployment(temporal, task_queue)
    workers = await _workers(temporal, task_queue)
    summaries = sorted(
        info.version_summaries, key=lambda one: one.create_time.ToNanoseconds(), reverse=True
    )
    routing = info.routing_config
    ramping = routing.ramping_deployment_version.build_id
    return [
        Version(
            build_id=(build_id := one.deployment_version.build_id),
            status=_status(one.status),
            percent=routing.ramping_version_percentage if build_id == ramping else None,
            workers=tuple(sorted(workers[build_id])),
        )
        for one in summaries
    ]


async def deploy(
    temporal: Client,
    task_queue: str,
    build_id: str,
    percent: float | None = None,
    wait: float = WAIT,
) -> None:
    """Make a version the one under which conversations begin, or `percent` of them.

    Those that run hand over to it between two steps. Where all begin under it already, nothing
    changes. Raises Invalid where no worker of it takes work within `wait` seconds, Unreachable,
    and TimedOut where it takes effect later.
    """
    refusal = await _refusal(temporal, task_queue, build_id, percent)
    try:
        async with asyncio.timeout(wait):
            while refusal:
                await asyncio.sleep(EVERY)
                refusal = await _refusal(temporal, task_queue, build_id, percent)
            await _spread(temporal, task_queue, build_id)
    except TimeoutError as error:
        if refusal:
            hint = f"Start one with PERDURE_BUILD_ID={build_id}; `perdure deploy` lists versions."
            raise Invalid(refusal, hint) from error
        what = f"The version {build_id!r} is not yet in force everywhere after {wait:g} s."
        raise TimedOut(what, "`perdure deploy` tells when it is current.") from error


async def _refusal(temporal: Client, queue: str, build_id: str, percent: float | None) -> str:
    """Set it, or say why that cannot be done yet."""
    if not (await _workers(temporal, queue))[build_id]:
        return f"No worker of the version {build_id!r} takes work from the queue {queue!r}."
    service, namespace = temporal.workflow_service, temporal.namespace
    try:
        if percent is None:
            await service.set_worker_deployment_current_version(
                SetWorkerDeploymentCurrentVersionRequest(
                    namespace=namespace, deployment_name=queue, build_id=build_id
                )
            )
        else:
            await service.set_worker_deployment_ramping_version(
                SetWorkerDeploymentRampingVersionRequest(
                    namespace=namespace,
                    deployment_name=queue,
                    build_id=build_id,
                    percentage=percent,
                )
            )
    except RPCError as error:
        if error.status in NOT_YET:
            return f"Temporal does not take the version {build_id!r}: {error.message}."
        raise _unreachable(error) from error
    return ""


async def _spread(temporal: Client, queue: str, build_id: str) -> None:
    """Wait until all know which version is current."""
    loop = asyncio.get_running_loop()
    lost = loop.time() + LOST
    while (info := await _deployment(temporal, queue)).routing_config_update_state == SPREADING:
        if loop.time() > lost and await _known(temporal, queue, build_id, info.routing_config):
            break
        await asyncio.sleep(EVERY)


async def _known(temporal: Client, queue: str, build_id: str, routing: RoutingConfig) -> bool:
    """Whether the version has queues, and each goes by this routing."""
    which = WorkerDeploymentVersion(deployment_name=queue, build_id=build_id)
    request = DescribeWorkerDeploymentVersionRequest(
        namespace=temporal.namespace, deployment_version=which
    )
    try:
        told = await temporal.workflow_service.describe_worker_deployment_version(request)
    except RPCError as error:
        raise _unreachable(error) from error
    queues = told.worker_deployment_version_info.task_queue_infos
    found = [(await _queue(temporal, one.name, one.type)).versioning_info for one in queues]
    return bool(found) and all(
        one.current_deployment_version == routing.current_deployment_version
        and one.ramping_deployment_version == routing.ramping_deployment_version
        and one.ramping_version_percentage == routing.ramping_version_percentage
        for one in found
    )


async def _deployment(temporal: Client, task_queue: str) -> WorkerDeploymentInfo:
    """What Temporal knows of all versions; nothing where no worker has ever told its own."""
    request = DescribeWorkerDeploymentRequest(
        namespace=temporal.namespace, deployment_name=task_queue
    )
    try:
        answer = await temporal.workflow_service.describe_worker_deployment(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return WorkerDeploymentInfo()
        raise _unreachable(error) from error
    return answer.worker_deployment_info


async def _workers(temporal: Client, task_queue: str) -> defaultdict[str, set[str]]:
    """The workers of each version that have lately asked for conversations to go on with."""
    answer = await _queue(temporal, task_queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
    since = datetime.now(UTC) - SILENT
    workers: defaultdict[str, set[str]] = defaultdict(set)
    for one in answer.pollers:
        if one.last_access_time.ToDatetime(tzinfo=UTC) > since:
            workers[one.deployment_options.build_id].add(one.identity)
    return workers


async def _queue(
    temporal: Client, name: str, kind: TaskQueueType.ValueType
) -> DescribeTaskQueueResponse:
    request = DescribeTaskQueueRequest(
        namespace=temporal.namespace, task_queue=TaskQueue(name=name), task_queue_type=kind
    )
    try:
        return await temporal.workflow_service.describe_task_queue(request)
    except RPCError as error:
        raise _unreachable(error) from error


def _status(status: Any) -> str:
    name = WorkerDeploymentVersionStatus.Name(status)
    return name.removeprefix("WORKER_DEPLOYMENT_VERSION_STATUS_").lower()


def _unreachable(error: RPCError) -> Unreachable:
    return Unreachable(f"Temporal does not tell of the versions of workers: {error.message}")

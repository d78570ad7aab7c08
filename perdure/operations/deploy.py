"""Worker versions, and the one on which conversations start."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from time import monotonic
from typing import Any

from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo
from temporalio.api.deployment.v1 import WorkerDeploymentVersion as Version
from temporalio.api.enums import v1 as enums
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as requests
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.errors import Invalid, TimedOut, Unreachable
from perdure.temporal.connect import translate_rpc_errors

NO_DESCRIPTION = "does not describe its workers"

DEPLOY_POLL_INTERVAL = 0.1

PROPAGATION_TIMEOUT = 5.0
"""Seconds after which the queues themselves are checked for the current version.

Temporal sometimes loses the acknowledgement that all queues have the new routing
(temporalio/temporal#11842): its deployment then stays "in progress" for ever.
"""

POLLER_EXPIRY = timedelta(seconds=90)
"""The age at which a poller counts as gone: workers poll every minute."""

NOT_READY_STATUSES = (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION)
"""Temporal's answers if a version's workers have not all connected, or never will."""

WORKFLOW_TASKS = enums.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW

_versions = attrgetter(
    "current_deployment_version", "ramping_deployment_version", "ramping_version_percentage"
)

PROPAGATING = enums.RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS


@dataclass(frozen=True)
class WorkerVersion:
    """A worker version that Temporal knows."""

    build_id: str
    status: str
    """Temporal's status: new conversations start on the `current` version, and `percent` of them
    on a `ramping` one; some still run on a `draining` version, none on a `drained` one."""
    percent: float | None
    workers: tuple[str, ...]
    """The workers that have polled lately."""


async def list_versions(temporal: Client, task_queue: str) -> list[WorkerVersion]:
    """List the versions of the workers on a queue, the newest first. Raises Unreachable."""
    info = await _describe_deployment(temporal, task_queue)
    workers = await list_workers(temporal, task_queue)
    summaries = sorted(
        info.version_summaries, key=lambda item: item.create_time.ToNanoseconds(), reverse=True
    )
    routing = info.routing_config
    ramping = routing.ramping_deployment_version.build_id
    return [
        WorkerVersion(
            build_id=(build_id := summary.deployment_version.build_id),
            status=enums.WorkerDeploymentVersionStatus.Name(summary.status)
            .removeprefix("WORKER_DEPLOYMENT_VERSION_STATUS_")
            .lower(),
            percent=routing.ramping_version_percentage if build_id == ramping else None,
            workers=tuple(sorted(workers[build_id])),
        )
        for summary in summaries
    ]


async def deploy(
    temporal: Client, queue: str, build_id: str, percent: float | None = None, max_wait: float = 30
) -> None:
    """Start new conversations, or `percent` of them, on a version.

    Running conversations move to it between two steps. Raises Invalid if none of its workers polls
    within `max_wait` seconds, Unreachable, and TimedOut if the change takes effect later.
    """
    refusal = await _set_version(temporal, queue, build_id, percent)
    try:
        async with asyncio.timeout(max_wait):
            while refusal:
                await asyncio.sleep(DEPLOY_POLL_INTERVAL)
                refusal = await _set_version(temporal, queue, build_id, percent)
            await _await_propagation(temporal, queue, build_id)
    except TimeoutError as error:
        if refusal:
            hint = f"Start one with PERDURE_BUILD_ID={build_id}; `perdure deploy` lists versions."
            raise Invalid(refusal, hint) from error
        message = f"The version {build_id!r} is not yet in force everywhere after {max_wait:g} s."
        raise TimedOut(message, "`perdure deploy` tells when it is current.") from error


async def _set_version(temporal: Client, queue: str, build_id: str, percent: float | None) -> str:
    """Set the current or ramping version, or return why that is not possible yet."""
    if not (await list_workers(temporal, queue))[build_id]:
        return f"No worker of the version {build_id!r} takes work from the queue {queue!r}."
    service = temporal.workflow_service
    version: dict[str, Any] = {
        "namespace": temporal.namespace,
        "deployment_name": queue,
        "build_id": build_id,
    }
    try:
        if percent is None:
            current = requests.SetWorkerDeploymentCurrentVersionRequest(**version)
            await service.set_worker_deployment_current_version(current)
        else:
            ramp = requests.SetWorkerDeploymentRampingVersionRequest(**version, percentage=percent)
            await service.set_worker_deployment_ramping_version(ramp)
    except RPCError as error:
        if error.status in NOT_READY_STATUSES:
            return f"Temporal does not take the version {build_id!r}: {error.message}."
        raise Unreachable(f"Temporal {NO_DESCRIPTION}: {error.message}") from error
    return ""


async def _await_propagation(temporal: Client, queue: str, build_id: str) -> None:
    """Wait until all queues have the new routing."""
    check_after = monotonic() + PROPAGATION_TIMEOUT
    while True:
        info = await _describe_deployment(temporal, queue)
        if info.routing_config_update_state != PROPAGATING:
            return
        late = monotonic() > check_after
        if late and await _in_force(temporal, queue, build_id, info.routing_config):
            return
        await asyncio.sleep(DEPLOY_POLL_INTERVAL)


async def _in_force(temporal: Client, queue: str, build_id: str, routing: RoutingConfig) -> bool:
    """Tell whether the version has queues, and each has this routing."""
    request = requests.DescribeWorkerDeploymentVersionRequest(
        namespace=temporal.namespace,
        deployment_version=Version(deployment_name=queue, build_id=build_id),
    )
    with translate_rpc_errors(NO_DESCRIPTION):
        answer = await temporal.workflow_service.describe_worker_deployment_version(request)
    queues = answer.worker_deployment_version_info.task_queue_infos
    infos = [await _describe_queue(temporal, info.name, info.type) for info in queues]
    wanted = _versions(routing)
    return bool(infos) and all(_versions(info.versioning_info) == wanted for info in infos)


async def _describe_deployment(temporal: Client, task_queue: str) -> WorkerDeploymentInfo:
    """Describe the deployment; an empty one if no versioned worker has ever connected."""
    request = requests.DescribeWorkerDeploymentRequest(
        namespace=temporal.namespace, deployment_name=task_queue
    )
    with translate_rpc_errors(NO_DESCRIPTION):
        try:
            answer = await temporal.workflow_service.describe_worker_deployment(request)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return WorkerDeploymentInfo()
    return answer.worker_deployment_info


async def list_workers(
    temporal: Client, task_queue: str, kind: enums.TaskQueueType.ValueType = WORKFLOW_TASKS
) -> defaultdict[str, set[str]]:
    """List the workers of each version that have polled a queue lately. Raises Unreachable.

    Those without a version are listed under the empty one.
    """
    answer = await _describe_queue(temporal, task_queue, kind)
    since = datetime.now(UTC) - POLLER_EXPIRY
    workers: defaultdict[str, set[str]] = defaultdict(set)
    for poller in answer.pollers:
        if poller.last_access_time.ToDatetime(tzinfo=UTC) > since:
            workers[poller.deployment_options.build_id].add(poller.identity)
    return workers


async def _describe_queue(
    temporal: Client, name: str, kind: enums.TaskQueueType.ValueType
) -> requests.DescribeTaskQueueResponse:
    request = requests.DescribeTaskQueueRequest(
        namespace=temporal.namespace, task_queue=TaskQueue(name=name), task_queue_type=kind
    )
    with translate_rpc_errors(NO_DESCRIPTION):
        return await temporal.workflow_service.describe_task_queue(request)

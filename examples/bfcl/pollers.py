"""The processes that poll Temporal for work."""

from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client


async def find_pollers(temporal: Client, task_queue: str) -> set[int]:
    """The processes that ask Temporal for steps to do."""
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    request = DescribeTaskQueueRequest(
        namespace=temporal.namespace,
        task_queue=TaskQueue(name=task_queue),
        # The plain mode sees one of the queue's partitions only.
        api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
        task_queue_types=[kind],
        report_pollers=True,
    )
    described = await temporal.workflow_service.describe_task_queue(request, retry=True)
    versions = described.versions_info.values()
    pollers = (poller for version in versions for poller in version.types_info[kind].pollers)
    return {pid_of(poller.identity) for poller in pollers}


def pid_of(identity: str) -> int:
    """A worker's identity is its pid, an @ and its host."""
    return int(identity.partition("@")[0] or 0)

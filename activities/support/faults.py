"""Failures whose fault is ours: a client is told the kind and an id, the worker's log has the rest.

Everything else that a step raises has a sentence for the person who must act.
"""

import logging

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.phase import FAULT_MARK

logger = logging.getLogger(__name__)


def report_fault(error: BaseException) -> str:
    """Write an error into the worker's log; return the id under which it stands there."""
    info = activity.info()
    fault_id = f"{(info.workflow_run_id or '')[:8]}-{info.activity_id}"
    logger.error(
        "fault %s in the step %s of %s",
        *(fault_id, info.activity_type, info.workflow_id),
        exc_info=error,
    )
    return fault_id


def to_failure(error: Exception) -> ApplicationError:
    """Build the failure of a step by an error that nobody expected; Temporal tries it again."""
    return ApplicationError(str(error), FAULT_MARK, report_fault(error), type=type(error).__name__)

"""Log lines of steps: they name the conversation and the user that they are about."""

import logging

from temporalio import activity

from perdure.telemetry.current import TRACE_ID
from perdure.temporal.names import DEFAULT_USER, batch_of, conversation_id_of, owner_of

CONVERSATION_PREFIX = "conv-"


class StepFilter(logging.Filter):
    """Sets the ids of a log record that a step writes: `conversation_id`, `user_id`, `batch` and
    `trace_id`, that of the turn.

    A format of one's own may use them; the message of a conversation ends with the first two.
    Other records have None.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if hasattr(record, "conversation_id"):  # another handler has filtered it
            return True
        user_id = conversation_id = batch = None
        workflow_id = activity.info().workflow_id if activity.in_activity() else None
        if workflow_id is not None:
            batch = batch_of(workflow_id)
            if batch is not None:
                user_id = owner_of(workflow_id) or DEFAULT_USER
        if workflow_id is not None and workflow_id.startswith(CONVERSATION_PREFIX):
            user_id = owner_of(workflow_id) or DEFAULT_USER
            conversation_id = conversation_id_of(workflow_id)
            record.msg = f"{record.getMessage()} [{user_id}/{conversation_id}]"
            record.args = None
        record.user_id, record.conversation_id = user_id, conversation_id
        record.batch, record.trace_id = batch, TRACE_ID.get()
        return True


def name_conversations() -> None:
    """Name the conversation in all later log lines that steps write in this process."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(StepFilter())

"""Ids of workflows. Each carries its user, so that nobody can address the workflow of another.

`conv-{user}:{id}`, `batch-{user}:{name}`, `batch-{user}:{name}/{shard}`, `ask-{user}:{id}-{uuid}`,
`discussion-{user}:{id}`: neither a user id nor the id of a conversation or a discussion nor the
name of a batch has a colon. Ids of the default user have no user, `conv-{id}`: they stand in many
events of many histories. There is one `sessions-{user}` of every user, and
`sessions-{user}:{queue}` for every other task queue. A schedule is `schedule-{user}:{name}`, also
of the default user; Temporal appends a time with colons to the id of what it starts,
`firing-{user}:{name}-{time}`. The delivery of an event to a webhook is
`delivery-{user}:{webhook}:{event}`.

Versions before this one gave ids without a user to everybody. A workflow that still runs under
such an id names its children in the same way, so that its history replays.
"""

DEFAULT_USER = "local"
"""The user whose workflow ids have no user; the default of the setting `user`."""

DEFAULT_QUEUE = "perdure"
"""The task queue which the ids of sessions do not name; the default of the setting `task_queue`."""

SEPARATOR = ":"
KINDS = ("conv", "batch", "ask", "discussion")

SESSIONS_PREFIX = "sessions-"
SCHEDULE_PREFIX = "schedule-"
FIRING_PREFIX = "firing-"
DELIVERY_PREFIX = "delivery-"

MAX_BATCH_WORKFLOW_ID = 245
"""Characters of the id of a batch: Temporal's SQL databases hold 255, and a shard has a number."""


def qualify(user_id: str, name: str) -> str:
    """Return a name that is unique among all users; different arguments give different results."""
    return name if user_id == DEFAULT_USER else f"{user_id}{SEPARATOR}{name}"


def conversation_workflow_id(user_id: str, conversation_id: str) -> str:
    return f"conv-{qualify(user_id, conversation_id)}"


def batch_workflow_id(user_id: str, name: str) -> str:
    return f"batch-{qualify(user_id, name)}"


def discussion_workflow_id(user_id: str, session_id: str) -> str:
    return f"discussion-{qualify(user_id, session_id)}"


def ask_workflow_prefix(user_id: str, conversation_id: str) -> str:
    """Return the prefix of the workflow ids of all questions about a conversation."""
    return f"ask-{qualify(user_id, conversation_id)}-"


def sessions_workflow_id(user_id: str, task_queue: str) -> str:
    """Return the id of the workflow that counts which conversations of a user work.

    Each task queue counts its own: its workers may have another store, or may be gone.
    """
    queue = "" if task_queue == DEFAULT_QUEUE else f"{SEPARATOR}{task_queue}"
    return f"{SESSIONS_PREFIX}{user_id}{queue}"


def schedule_id(user_id: str, name: str) -> str:
    return f"{SCHEDULE_PREFIX}{user_id}{SEPARATOR}{name}"


def schedule_name_of(user_id: str, schedule: str) -> str | None:
    """Return the name in the id of a schedule; None if it is not one of the user."""
    prefix = schedule_id(user_id, "")
    return schedule.removeprefix(prefix) if schedule.startswith(prefix) else None


def firing_workflow_id(user_id: str, name: str) -> str:
    """Return the id to which Temporal appends the time of each firing."""
    return f"{FIRING_PREFIX}{user_id}{SEPARATOR}{name}"


def delivery_workflow_id(user_id: str, webhook_id: str, event_id: str) -> str:
    return f"{delivery_workflow_prefix(user_id, webhook_id)}{event_id}"


def delivery_workflow_prefix(user_id: str, webhook_id: str) -> str:
    """Return the prefix of the workflow ids of all deliveries to a webhook."""
    return f"{DELIVERY_PREFIX}{user_id}{SEPARATOR}{webhook_id}{SEPARATOR}"


def child_workflow_id(parent_workflow_id: str, conversation_id: str) -> str:
    """Return the workflow id of a conversation of the user of another workflow."""
    return f"conv-{_qualifier(parent_workflow_id)}{conversation_id}"


def workspace_folder(user_id: str, conversation_id: str) -> str:
    """Return the path of a conversation's own folder, within the folder of all workspaces."""
    if user_id == DEFAULT_USER:
        return conversation_id
    return f"users/{user_id}/{conversation_id}"


def owner_of(workflow_id: str) -> str | None:
    """Return the user in a workflow id; None for the default user, and for ids of before."""
    for prefix in (SESSIONS_PREFIX, FIRING_PREFIX, DELIVERY_PREFIX):
        if workflow_id.startswith(prefix):
            user_id = workflow_id.removeprefix(prefix).partition(SEPARATOR)[0]
            return None if user_id == DEFAULT_USER else user_id
    return _qualifier(workflow_id).removesuffix(SEPARATOR) or None


def conversation_id_of(workflow_id: str) -> str:
    """Return the conversation id in a workflow id; any other text stays as it is."""
    return workflow_id.removeprefix("conv-").removeprefix(_qualifier(workflow_id))


def batch_of(workflow_id: str) -> str | None:
    """Return the name of the batch in a workflow id; None if it is of something else."""
    if not workflow_id.startswith("batch-"):
        return None
    name = workflow_id.removeprefix("batch-").removeprefix(_qualifier(workflow_id))
    return name.partition("/")[0]


def _qualifier(workflow_id: str) -> str:
    """Return the user in a workflow id with the colon after it; "" without any."""
    kind, _, qualified = workflow_id.partition("-")
    user_id, separator, _ = qualified.partition(SEPARATOR)
    return f"{user_id}{separator}" if separator and kind in KINDS else ""


ACTOR_HEADER = "perdure-actor"
"""The header of a signal or an update that has the id of the user who sends it."""

TRACE_HEADER = "traceparent"
"""The header of a signal or an update that has the sender's span (W3C Trace Context)."""

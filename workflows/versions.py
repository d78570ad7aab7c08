"""The version of the worker that carried out a task of the history, by which a replay decides."""

from temporalio import workflow

from perdure.temporal.build_id import read_revision

SAVES_PATCH = "conversation.save as a local activity"
SAVES_REVISION = 1
"""The first revision whose workflows save in local activities."""


def has_deployment() -> bool:
    """Tell whether the worker belongs to a deployment, whose operator chose its build id."""
    version = workflow.info().get_current_deployment_version()
    return version is not None and bool(version.deployment_name)


def saves_locally() -> bool:
    """Tell whether the worker saves the states of conversations in local activities."""
    if has_deployment():
        return workflow.patched(SAVES_PATCH)
    return read_revision(workflow.info().get_current_build_id()) >= SAVES_REVISION

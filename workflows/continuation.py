"""The end of a run that continues as new, and the state that the next run takes over."""

from typing import Protocol

from temporalio import workflow
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.agent.loop.inbox import InboxItem, json_size
from perdure.agent.loop.start import MAX_RUN_EVENTS, Start
from perdure.agent.loop.state import RunNotes, State, find_lost_call
from perdure.workflows.admission import ConversationAdmission
from perdure.workflows.step_runner import StepRunner

MAX_HANDOVER_BYTES = 120 * 1024
"""Size limit of the next run's input; a larger inbox is recorded first."""


class Run(Protocol):
    """A run of a conversation, as far as the next one takes it over."""

    start: Start
    state: State
    notes: RunNotes
    inbox: list[InboxItem]
    runner: StepRunner
    saved_seq: int
    admission: ConversationAdmission

    def seconds_left(self) -> float | None: ...


def continue_if_due(run: Run) -> None:
    """Continue as new if it is time to, and the next run's input is not too large."""
    if not _is_due(run):
        return
    start = _next_start(run)
    if json_size(start) < MAX_HANDOVER_BYTES:
        workflow.continue_as_new(
            start, initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE
        )


def _is_due(run: Run) -> bool:
    """Tell whether to continue as new, which must not happen while an update is handled."""
    info = workflow.info()
    long = (
        info.get_current_history_length() > run.start.max_run_events
        or info.is_continue_as_new_suggested()
    )
    old = info.is_target_worker_deployment_version_changed()
    # The late result of a lost call must be resolved by the same run.
    resolved = find_lost_call(run.state, run.notes) is None
    return (long or old) and resolved and workflow.all_handlers_finished()


def _next_start(run: Run) -> Start:
    changes = {
        "state": run.state,
        "notes": run.notes,
        "inbox": tuple(run.inbox),
        "model_queues": run.runner.model_queues.as_input(),
        "max_run_events": MAX_RUN_EVENTS,
        "saved_seq": run.saved_seq,
        "admission_id": run.admission.id,
        "active_at": run.admission.active_at,
    }
    return run.start.model_copy(update={"spec": None, **changes})

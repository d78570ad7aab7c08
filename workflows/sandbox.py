"""The sandbox of our workflows: Temporal's, with the pure packages passed through."""

from collections.abc import Callable
from typing import Any

from temporalio.converter import SerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from perdure.temporal.heartbeats import RunSteps
from perdure.temporal.worker_load import WorkerLoad, WorkflowRun

PURE_PACKAGES = (
    "perdure.agent",
    "perdure.errors",
    "perdure.evaluation",
    "perdure.events",
    "perdure.references",
    "perdure.telemetry.turns",
    "perdure.temporal.build_id",
    "perdure.temporal.names",
    "perdure.temporal.search_attributes",
    "perdure.temporal.sessions",
    "perdure.temporal.timeouts",
    "perdure.temporal.webhooks",
    "perdure.workflows.activity_options",
    "perdure.workflows.actor",
    "perdure.workflows.admission",
    "perdure.workflows.batch.attempts",
    "perdure.workflows.batch.background",
    "perdure.workflows.batch.budget_requests",
    "perdure.workflows.batch.run",
    "perdure.workflows.batch.shards",
    "perdure.workflows.batch.state",
    "perdure.workflows.children",
    "perdure.workflows.continuation",
    "perdure.workflows.discussion.run",
    "perdure.workflows.discussion.turns",
    "perdure.workflows.ids",
    "perdure.workflows.local_steps",
    "perdure.workflows.loop",
    "perdure.workflows.messages",
    "perdure.workflows.model_queues",
    "perdure.workflows.requests",
    "perdure.workflows.step_failures",
    "perdure.workflows.step_runner",
    "perdure.workflows.versions",
    "perdure.workflows.wait_requests",
    "perdure.workflows.waits",
)
"""Packages and modules that are loaded once a worker, not anew for each run of a workflow.

Loading all of them took 100 ms of CPU. Only the modules that define a workflow are left.

They keep no state that one workflow could leave to another, and ruff, import-linter and the tests
refuse clocks, randomness and I/O in what workflows import of them.
"""


class WorkflowSandbox(SandboxedWorkflowRunner):
    """A workflow runner that loads the pure packages outside of the sandbox.

    A data converter may ask which command a payload belongs to. The SDK finds out by running code
    in the sandbox, a dozen times a step: a tenth of the CPU of a worker. Our converter and the
    codec that encrypts do not ask; one that does (`WithSerializationContext`) must not be used with
    this, nor one with an external storage.

    `on_task_failure` is called with the id of every workflow whose task fails. The `load` is told
    which runs are in the cache, and when they go on.
    """

    def __init__(
        self,
        on_task_failure: Callable[[str], None] | None = None,
        load: WorkerLoad | None = None,
    ) -> None:
        restrictions = SandboxRestrictions.default.with_passthrough_modules(*PURE_PACKAGES)
        super().__init__(restrictions=restrictions)
        self.on_task_failure = on_task_failure
        self.load = load

    def prepare_workflow(self, defn: Any) -> None:
        """Load nothing, where the SDK would load the workflow once only to see whether it can.

        The workflows are ours, and tests see it: a worker that starts saves 20 ms of CPU.
        """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        return _ContextFreeInstance(instance, det.info, self.on_task_failure, self.load)


class _ContextFreeInstance(WorkflowInstance):
    """A workflow instance without serialization contexts that delegates everything else."""

    def __init__(
        self,
        instance: WorkflowInstance,
        info: Info,
        on_task_failure: Callable[[str], None] | None,
        load: WorkerLoad | None,
    ) -> None:
        self.instance = instance
        self.workflow_id = info.workflow_id
        self.run = WorkflowRun(info.priority.fairness_key or "", bool(info.priority.priority_key))
        self.task_queue = info.task_queue
        self.on_task_failure = on_task_failure
        self.load = load
        self.steps: RunSteps | None = None
        if load is not None:
            load.keep_run(info.run_id, self.run)
            self.steps = RunSteps(info.run_id, load.queues)

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:  # noqa: ARG002
        return None

    def get_external_store_context(self, command_info: Any) -> Any:  # noqa: ARG002
        return None

    def activate(self, act: Any) -> Any:
        completion = self.instance.activate(act)
        commands = completion.successful.commands
        if self.steps is not None:
            self.steps.follow(act, commands)
        if self.load is not None and not act.is_replaying:
            has_next = any(it.schedule_activity.task_queue == self.task_queue for it in commands)
            self.load.go_on(self.run, has_next)
        if self.on_task_failure is not None and completion.HasField("failed"):
            self.on_task_failure(self.workflow_id)
        return completion

    def get_info(self) -> Any:
        return self.instance.get_info()

    def get_thread_id(self) -> int | None:
        return self.instance.get_thread_id()

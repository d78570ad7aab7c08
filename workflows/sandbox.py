"""The sandbox of our workflows: Temporal's, with the pure packages passed through."""

from collections.abc import Callable
from typing import Any

from temporalio.converter import SerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PURE_PACKAGES = (
    "perdure.agent",
    "perdure.errors",
    "perdure.evaluation",
    "perdure.events",
    "perdure.references",
    "perdure.temporal.names",
    "perdure.temporal.search_attributes",
    "perdure.temporal.timeouts",
)
"""Packages that are loaded once a worker, not anew for each conversation (100 ms of CPU).

They keep no state that one workflow could leave to another, and ruff, import-linter and the tests
refuse clocks, randomness and I/O in what workflows import of them.
"""


class WorkflowSandbox(SandboxedWorkflowRunner):
    """A workflow runner that loads `workflows/` in the sandbox and the pure packages outside of it.

    A data converter may ask which command a payload belongs to. The SDK finds out by running code
    in the sandbox, a dozen times a step: a tenth of the CPU of a worker. Our converter and the
    codec that encrypts do not ask; one that does (`WithSerializationContext`) must not be used with
    this, nor one with an external storage.

    `on_task_failure` is called with the id of every workflow whose task fails.
    """

    def __init__(self, on_task_failure: Callable[[str], None] | None = None) -> None:
        restrictions = SandboxRestrictions.default.with_passthrough_modules(*PURE_PACKAGES)
        super().__init__(restrictions=restrictions)
        self.on_task_failure = on_task_failure

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _ContextFreeInstance(
            super().create_instance(det), det.info.workflow_id, self.on_task_failure
        )


class _ContextFreeInstance(WorkflowInstance):
    """A workflow instance without serialization contexts that delegates everything else."""

    def __init__(
        self,
        instance: WorkflowInstance,
        workflow_id: str,
        on_task_failure: Callable[[str], None] | None,
    ) -> None:
        self.instance = instance
        self.workflow_id = workflow_id
        self.on_task_failure = on_task_failure

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:  # noqa: ARG002
        return None

    def get_external_store_context(self, command_info: Any) -> Any:  # noqa: ARG002
        return None

    def activate(self, act: Any) -> Any:
        completion = self.instance.activate(act)
        if self.on_task_failure is not None and completion.HasField("failed"):
            self.on_task_failure(self.workflow_id)
        return completion

    def get_info(self) -> Any:
        return self.instance.get_info()

    def get_thread_id(self) -> int | None:
        return self.instance.get_thread_id()

"""The sandbox that our workflows run in: Temporal's, all of it, less one question."""

from collections.abc import Callable
from typing import Any

from temporalio.converter import SerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner


class Sandbox(SandboxedWorkflowRunner):
    """Sees all of our code, and passes none of it through.

    A data converter may want to know which command a payload belongs to. The SDK finds out by
    running code in the sandbox, a dozen times a step: a tenth of the CPU of a worker. Our
    converter and the codec that encrypts do not ask; one that does (`WithSerializationContext`)
    must not be used with this.

    `suspect` is told of every workflow whose code raised something that fails its task.
    """

    def __init__(self, suspect: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.suspect = suspect

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContext(super().create_instance(det), det.info.workflow_id, self.suspect)


class _WithoutContext(WorkflowInstance):
    """An instance that knows no serialization context; all else is the instance's own."""

    def __init__(
        self, instance: WorkflowInstance, workflow_id: str, suspect: Callable[[str], None] | None
    ) -> None:
        self.instance = instance
        self.workflow_id = workflow_id
        self.suspect = suspect

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:  # noqa: ARG002
        return None

    def get_external_store_context(self, command_info: Any) -> Any:
        return self.instance.get_external_store_context(command_info)

    def activate(self, act: Any) -> Any:
        done = self.instance.activate(act)
        if self.suspect is not None and done.HasField("failed"):
            self.suspect(self.workflow_id)
        return done

    def get_info(self) -> Any:
        return self.instance.get_info()

    def get_thread_id(self) -> int | None:
        return self.instance.get_thread_id()

"""Ids of workflows."""


def conversation_workflow_id(conversation_id: str) -> str:
    return f"conv-{conversation_id}"


def conversation_id_of(workflow_id: str) -> str:
    return workflow_id.removeprefix("conv-")


def batch_workflow_id(name: str) -> str:
    return f"batch-{name}"

"""A trouble says why a conversation does not go on, and what to do."""

import pytest

from perdure.client.diagnosis import trouble
from perdure.client.diagnosis.failures import FailureReason, TaskFailureKind
from perdure.client.trouble import Trouble

GO_ON = "A message or `perdure resume` goes on."


@pytest.mark.parametrize(
    ("failure", "sentence", "cause"),
    [
        (None, f"Its workflow has ended in the middle of a turn. {GO_ON}", "ended"),
        (FailureReason("It broke"), f"Its workflow failed: It broke. {GO_ON}", "failed"),
        (FailureReason("Seq 3 is bad.", "Damaged"), "Its workflow failed: Seq 3 is bad.", "failed"),
    ],
)
def test_a_closed_workflow_is_explained(
    failure: FailureReason | None, sentence: str, cause: str
) -> None:
    closed = trouble.workflow_closed(failure)
    assert (closed.sentence, closed.cause, closed.is_over) == (sentence, cause, True)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (TaskFailureKind.BROKEN, "a worker with a mended version runs"),
        (TaskFailureKind.NONDETERMINISTIC, "a worker runs the version that it began with"),
        (TaskFailureKind.TOO_LARGE, "Terminate the workflow in Temporal"),
    ],
)
def test_a_failed_workflow_task_says_what_to_do(kind: TaskFailureKind, advice: str) -> None:
    failed = trouble.workflow_task_failed(FailureReason("ValueError: no", kind=kind), 2)
    assert "ValueError: no." in failed.sentence
    assert "2 times" in failed.sentence
    assert advice in failed.sentence
    assert not failed.is_over


def test_the_trouble_of_another_conversation_names_it() -> None:
    slow = Trouble("untaken", "No worker has taken it up.", slow=True)
    of_delegate = trouble.delegate_trouble("c-1", slow)
    assert of_delegate == Trouble(
        "c-1: untaken", "Its delegate c-1: No worker has taken it up.", True
    )
    of_sample = trouble.sample_trouble("c-1", slow)
    assert of_sample == Trouble("untaken", "The conversation c-1: No worker has taken it up.", True)

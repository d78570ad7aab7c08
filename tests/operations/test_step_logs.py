"""The log lines of steps name the conversation and the user that they are about."""

import logging
from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.operations.step_logs import StepFilter

NAME = "0195f3a0-0000-7000-8000-000000000000"


class Records(logging.Handler):
    """Keeps the records that pass."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[object, ...]] = []

    def emit(self, record: logging.LogRecord) -> None:
        about = [getattr(record, name) for name in ("user_id", "conversation_id", "batch")]
        self.kept.append((*about, record.getMessage()))


@pytest.mark.parametrize(
    ("workflow_id", "user", "conversation", "batch"),
    [
        (f"conv-anna:{NAME}", "anna", NAME, None),
        (f"conv-{NAME}", "local", NAME, None),
        ("batch-anna:sums", "anna", None, "sums"),
        ("batch-sums/3", "local", None, "sums"),
        ("sessions-anna", None, None, None),
    ],
)
async def test_a_log_line_of_a_step_names_the_conversation_and_its_user(
    workflow_id: str, user: str | None, conversation: str | None, batch: str | None
) -> None:
    first, second = Records(), Records()
    logger = logging.Logger("step")
    for handler in (first, second):
        handler.addFilter(StepFilter())
        logger.addHandler(handler)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=workflow_id)
    environment.run(lambda: logger.warning("no %s", "luck"))
    ending = f" [{user}/{conversation}]" if conversation else ""
    assert first.kept == second.kept == [(user, conversation, batch, f"no luck{ending}")]


def test_a_log_line_of_no_step_names_none() -> None:
    handler, logger = Records(), logging.Logger("worker")
    handler.addFilter(StepFilter())
    logger.addHandler(handler)
    logger.warning("polls %d", 1)
    assert handler.kept == [(None, None, None, "polls 1")]

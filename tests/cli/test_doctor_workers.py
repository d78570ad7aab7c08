"""What `perdure doctor` says of the workers of each kind."""

import asyncio

import pytest

from perdure.cli.doctor_checks import Checkup, check_worker
from perdure.errors import Unreachable
from perdure.operations.worker.options import WorkerKind
from perdure.settings.settings import Settings
from tests.harness import ConversationHarness
from tests.workflows.conftest import harness, temporal
from tests.workflows.test_worker_kinds import running

__all__ = ["harness", "temporal"]

pytestmark = pytest.mark.long


def checkup(harness: ConversationHarness) -> Checkup:
    connection = asyncio.get_running_loop().create_future()
    connection.set_result(harness.client.temporal)
    return Checkup(Settings(task_queue=harness.client.task_queue), connection=connection)


async def test_all_kinds_of_workers_are_counted(harness: ConversationHarness) -> None:
    async with running(harness, "workflows"), running(harness, "model", "tools"):
        said = await wait_for_workers(harness)
    assert said.endswith(f"on the queue '{harness.client.task_queue}'; ask models: 1, run tools: 1")


async def wait_for_workers(harness: ConversationHarness) -> str:
    """Wait until Temporal knows of the workers, which have just begun to poll."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await check_worker(checkup(harness))
            except Unreachable:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("kinds", "sentence", "option"),
    [
        (("workflows", "tools"), "No worker asks models: ", "--only model"),
        (("workflows", "model"), "No worker runs tools: ", "--only tools"),
    ],
)
async def test_a_kind_of_work_without_a_worker_is_said(
    harness: ConversationHarness, kinds: tuple[WorkerKind, ...], sentence: str, option: str
) -> None:
    refused: Unreachable | None = None
    async with running(harness, *kinds), asyncio.timeout(30):
        while not str(refused).startswith(sentence):  # Temporal knows of the workers in a moment
            await asyncio.sleep(0.1)
            with pytest.raises(Unreachable) as raised:
                await check_worker(checkup(harness))
            refused = raised.value
    assert refused is not None
    assert option in refused.hint

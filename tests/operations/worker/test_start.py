"""A new worker loads what its first answer needs, and no library that something else needs."""

import subprocess
import sys

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.events.observations import TerminalObservation
from perdure.events.tools import ObservationEvent
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import worker_process
from tests.workflows.watching import events, observations

UNNEEDED = {
    *("aiohttp", "boto3", "botocore", "cryptography", "httpx2", "jinja2", "jsonschema", "litellm"),
    *(
        "lancedb",
        "obstore",
        "markdown_it",
        "mcp",
        "mcp_types",
        "openai",
        "opentelemetry",
        "prompt_toolkit",
        "pyarrow",
    ),
    *("rich", "starlette", "tree_sitter", "tree_sitter_bash", "typer", "uvicorn", "yaml"),
    *("perdure.cli", "perdure.embedded.stack", "perdure.tools.risk.rules"),
}
"""Modules that a worker needs for other models, stores, tools and agents, or not at all."""


@pytest.mark.long
async def test_a_worker_that_answered_and_ran_a_command_has_loaded_no_library_of_others(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    spec = harness.spec(
        tool_call_answer(("terminal", {"command": "echo here"})),
        tool_call_answer(("loaded_modules", {})),
        text_answer("done"),
        tools=("terminal", "file_editor", "finish", "tests.operations.loaded_modules:TOOLS"),
    )
    log = harness.folder / "worker.log"
    with worker_process(environment, log):
        talk = await harness.client.start("go", spec)
        assert (await talk.wait_for_turn()).status == "finished"
    [command, _] = await events(talk, ObservationEvent)
    assert isinstance(command.observation, TerminalObservation)
    [output, modules] = await observations(talk)
    assert "here" in output
    loaded = set(modules.split())
    assert {"temporalio.worker", "perdure.tools.terminal", "perdure.activities.tool"} <= loaded
    assert loaded & UNNEEDED == set()
    assert f"the modules are listed [local/{talk.id}]" in log.read_text()


def test_the_command_that_becomes_a_worker_loads_neither_temporal_nor_the_settings() -> None:
    code = "import sys, perdure.cli.main, perdure.cli.runner, perdure.cli.commands.worker\n"
    code += "import perdure.cli.ids, perdure.cli.output, perdure.operations.error_reports\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "perdure.cli.commands.worker" in loaded
    assert (
        loaded & {"temporalio", "pydantic_settings", "perdure.settings.settings", "rich"} == set()
    )

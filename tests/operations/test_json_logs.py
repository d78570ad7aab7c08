"""The log of a worker off a terminal: an object of JSON a line, with ids of what it is about."""

import json
import logging
import sys
from typing import Any

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.operations.json_logs import JsonFormatter
from perdure.secrets.masking import MaskingFilter
from perdure.secrets.registry import Secrets
from perdure.telemetry.identity import turn_place
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import worker_process

TOOLS = ("tests.operations.loaded_modules:TOOLS", "finish")


@pytest.mark.long
async def test_lines_of_a_worker_have_ids_and_each_start_has_one(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
        "PERDURE_LOG_FORMAT": "auto",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    }
    spec = harness.spec(
        tool_call_answer(("loaded_modules", {})),
        *(text_answer("one"), text_answer("two")),
        tools=TOOLS,
        finished_timeout=0.1,
    )
    log = harness.folder / "worker.log"
    with worker_process(environment, log):
        talk = await harness.client.start("go", spec)
        await talk.result()
        await talk.handle.result()  # its workflow has ended
        await talk.send("and on")
        await talk.result()
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "process", "message"} for line in lines)
    about = {"conversation_id": talk.id, "user_id": "local"}
    first, second = [line for line in lines if line["logger"] == "perdure.worker.start"]
    assert first.items() >= {**about, "success": True, "restored": False}.items()
    assert second.items() >= {**about, "success": True, "restored": True}.items()
    assert 0 < first["duration"] < 60
    [step] = [line for line in lines if "the modules are listed" in line["message"]]
    trace = f"{turn_place(talk.id, 1).trace_id:032x}"
    assert step.items() >= {**about, "trace_id": trace, "level": "WARNING"}.items()


@pytest.mark.parametrize("text", ['say "hi"', "two\nlines", "grüße ✓", "back\\slash"])
def test_a_line_is_one_object_whatever_it_says(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("any", logging.ERROR, "", 0, "%s", (text,), None)
        record.exc_info = sys.exc_info()
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["message"] == text
    assert json.loads(line)["exception"].endswith(f"ValueError: {text}")


def test_a_line_is_masked(tmp_path: Any) -> None:
    (tmp_path / "KEY").write_text('se"cret\\value')
    record = logging.LogRecord("any", logging.ERROR, "", 0, 'it is se"cret\\value', (), None)
    MaskingFilter(Secrets(tmp_path)).filter(record)
    assert json.loads(JsonFormatter().format(record))["message"] == "it is <secret:KEY>"


@pytest.mark.parametrize(("message", "fields"), [('{"act": "login"}', {"act": "login"}), ("{", {})])
def test_a_message_in_json_stands_in_the_line_by_its_fields(
    message: str, fields: dict[str, Any]
) -> None:
    record = logging.LogRecord("any", logging.INFO, "", 0, "%s", (message,), None)
    record.is_json = True
    line = json.loads(JsonFormatter().format(record))
    assert line.items() >= (fields or {"message": message}).items()
    assert ("message" in line) == (not fields)

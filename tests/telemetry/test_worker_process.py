"""The telemetry of worker processes: under kills, without a collector, with secrets, when off."""

import asyncio
from pathlib import Path

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.events.tools import ActionEvent
from tests import secret_leaks
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.secret_leaks import CANARIES, COPY, LEAK, NAMES, VALUES, find_leaks
from tests.telemetry.collector import Collector, attributes_of, run_collector
from tests.workers import worker_process
from tests.workflows.watching import entries, observations

Environment = dict[str, str]

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def environment(harness: ConversationHarness, temporal_server: TemporalServer) -> Environment:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }


@pytest.mark.long
async def test_workers_that_are_killed_double_no_span(
    harness: ConversationHarness, environment: Environment, collector: Collector
) -> None:
    calls = [tool_call_answer(("look", {"seconds": 0.7 + nth / 100})) for nth in range(8)]
    spec = harness.spec(*calls, text_answer("seen"), heartbeat_timeout=1)
    environment |= collector.environment
    log = harness.folder / "worker.log"
    conversation = await harness.client.start("look", spec)
    waiting = asyncio.create_task(conversation.result())
    for _ in range(3):
        with worker_process(environment, log) as worker:
            await asyncio.wait({waiting}, timeout=5)
            worker.kill()
    with worker_process(environment, log):
        async with asyncio.timeout(90):
            await waiting
        await collector.turns(1)
    events = [entry.event for entry in await entries(conversation)]
    distinct = collector.distinct().values()
    [root] = [span for span in distinct if span.name == "invoke_agent"]
    assert {span.trace_id for span in distinct} == {root.trace_id}
    answered = [attributes_of(span) for span in distinct if span.name == "execute_tool look"]
    called = {event.tool_call_id for event in events if isinstance(event, ActionEvent)}
    ids = [attributes["gen_ai.tool.call.id"] for attributes in answered]
    assert len(ids) == len(set(ids))
    assert set(ids) <= called
    assert len(ids) >= 4, "what a killed worker had not sent yet is lost with it"
    keys = [attributes_of(span)["perdure.event.key"] for span in distinct if "chat" in span.name]
    assert len(keys) == len(set(keys)) <= 9


@pytest.mark.long
async def test_twenty_secrets_are_in_no_span_no_metric_and_no_log(
    harness: ConversationHarness, environment: Environment, collector: Collector, tmp_path: Path
) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, value in CANARIES.items():
        (folder / name).write_text(value)
    everything, leak = "\n".join(VALUES), f"python3 leak.py {' '.join(NAMES)}"
    spec = harness.spec(
        tool_call_answer(("terminal", {"command": f"cat > leak.py <<'END'\n{LEAK}\nEND"})),
        tool_call_answer(("terminal", {"command": f"{leak} | tee {COPY}"})),
        tool_call_answer(("raise_them", {})),
        tool_call_answer(("think", {"thought": everything}), content=everything),
        text_answer(f"they are {everything}"),
        tools=("terminal", "think", "finish", f"{secret_leaks.__name__}:TOOLS"),
        secrets=NAMES,
    )
    environment |= collector.environment | {
        "PERDURE_SECRETS": str(folder),
        "PERDURE_LOG_FORMAT": "json",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    log = harness.folder / "worker.log"
    with worker_process(environment, log) as worker:
        conversation = await harness.client.start("spill them", spec)
        await conversation.result()
        await collector.turns(1)
        await collector.wait(lambda: "gen_ai.client.token.usage" in collector.metrics)
        worker.stop()
    assert find_leaks("".join(await observations(conversation)).encode()) == set()
    spans = b"".join(span.SerializeToString() for span in collector.spans)
    assert b"<secret:CANARY_19>" in spans, "content is sent, and masked"
    assert b"spill them" in spans
    for body in collector.bodies:
        assert find_leaks(body) == set()
    assert find_leaks(log.read_bytes()) == set()


@pytest.mark.long
async def test_a_collector_that_is_down_is_told_once_and_the_work_goes_on(
    harness: ConversationHarness, environment: Environment
) -> None:
    calls = [tool_call_answer(("look", {"seconds": 0.3 + nth / 100})) for nth in range(6)]
    environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": DEAD,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    log = harness.folder / "worker.log"
    with worker_process(environment, log) as worker:
        conversation = await harness.client.start("look", harness.spec(*calls, text_answer("ok")))
        assert (await conversation.result()).text == "ok"
        await asyncio.sleep(2)
        assert worker.stop() == 0
    text = log.read_text()
    assert text.count("what is not sent is lost") == 1
    assert [line for line in text.splitlines() if "Traceback" in line] == []
    assert len(text.splitlines()) < 10


@pytest.mark.long
async def test_spans_go_on_once_a_collector_is_there(
    harness: ConversationHarness, environment: Environment, unused_tcp_port: int
) -> None:
    environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{unused_tcp_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    spec = harness.spec(text_answer("one"), text_answer("two"))
    log = harness.folder / "worker.log"
    with worker_process(environment, log):
        conversation = await harness.client.start("go", spec)
        await conversation.result()
        await asyncio.sleep(2)
        async with run_collector(unused_tcp_port) as collector:
            await conversation.send("again")
            await conversation.result()
            await collector.turns(1)
    assert "The collector takes spans again." in log.read_text()

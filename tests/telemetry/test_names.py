"""Names are those of the conventions' published table, in the version that is said."""

import re

from opentelemetry.semconv._incubating.attributes import (
    error_attributes,
    gen_ai_attributes,
    http_attributes,
    jsonrpc_attributes,
    mcp_attributes,
    network_attributes,
    rpc_attributes,
    server_attributes,
    url_attributes,
    user_attributes,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.schemas import Schemas

from perdure.telemetry import names
from tests.harness import text_answer, tool_call_answer
from tests.telemetry.collector import Collector, attributes_of
from tests.telemetry.conftest import Observe

TABLES = (
    error_attributes,
    gen_ai_attributes,
    gen_ai_metrics,
    http_attributes,
    jsonrpc_attributes,
    mcp_attributes,
    network_attributes,
    rpc_attributes,
    server_attributes,
    url_attributes,
    user_attributes,
)
PUBLISHED = {
    value for module in TABLES for value in vars(module).values() if isinstance(value, str)
}
CONVENTIONS = re.compile(r"(gen_ai|error|user|server|http|url|mcp|network|jsonrpc|rpc)\.[a-z_.]+")
OURS = re.compile(r"perdure\.[a-z_.]+")


def test_every_name_of_the_conventions_is_one_that_they_publish() -> None:
    ours = {value for value in vars(names).values() if isinstance(value, str)}
    of_conventions = {value for value in ours if CONVENTIONS.fullmatch(value)}
    assert len(of_conventions) > 20
    assert of_conventions <= PUBLISHED
    deprecated = {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion"}
    assert not of_conventions & deprecated


def test_the_version_is_that_of_the_published_table() -> None:
    assert [*Schemas][-1].value == f"https://opentelemetry.io/schemas/{names.CONVENTIONS_VERSION}"
    assert [*Schemas][-1].value == names.SCHEMA_URL


async def test_a_collector_gets_no_attribute_that_is_not_in_the_table(
    observe: Observe, collector: Collector
) -> None:
    observed = observe(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    harness = observed.conversations
    calls = [tool_call_answer(("add", {"a": 1, "b": 1})), tool_call_answer(("fail", {"why": "x"}))]
    spec = harness.spec(*calls, text_answer("done"), agent="counter")
    async with observed.worker():
        conversation = await harness.client.start("count", spec)
        await conversation.result()
        await collector.turns(1)
    sent = {name for span in collector.spans for name in attributes_of(span)}
    assert {name for name in sent if not OURS.fullmatch(name)} <= PUBLISHED
    table = {value for value in vars(names).values() if isinstance(value, str)}
    assert sent <= table
    required = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}
    for span in collector.named("chat") + collector.named("invoke_agent"):
        assert required <= set(attributes_of(span))
    operations = {attributes_of(span).get("gen_ai.operation.name") for span in collector.spans}
    known = {it.value for it in gen_ai_attributes.GenAiOperationNameValues}
    assert operations - {None} <= known

"""The spans of turns, as a collector receives them."""

from collections import Counter

import pytest
from opentelemetry.sdk.trace import TracerProvider

from perdure.client.turn import TurnFailed
from perdure.temporal.sender import sent_from
from tests.harness import text_answer, tool_call_answer
from tests.telemetry.collector import Collector, attributes_of
from tests.telemetry.conftest import Observe

SENDER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def list_names(collector: Collector) -> Counter[str]:
    return Counter(span.name for span in collector.spans)


async def test_a_turn_is_one_trace_of_its_requests_calls_and_events(
    observe: Observe, collector: Collector
) -> None:
    observed = observe(OTEL_SERVICE_NAME="agents")
    harness = observed.conversations
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    spec = harness.spec(call, text_answer("5"), agent="adder")
    async with observed.worker():
        conversation = await harness.client.start("What is 2 + 3?", spec)
        result = await conversation.result()
        await collector.turns(1)
    assert list_names(collector) == {
        "invoke_agent adder": 1,
        "chat scripted": 2,
        "execute_tool add": 1,
        "storage.append": 7,
    }
    [root] = collector.named("invoke_agent")
    assert root.parent_span_id == b""
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    parts = [span for span in collector.spans if span is not root]
    assert {span.parent_span_id for span in parts} == {root.span_id}
    assert len({span.span_id for span in collector.spans}) == 11
    assert {attributes_of(span)["gen_ai.conversation.id"] for span in collector.spans} == {
        result.conversation_id
    }
    for span in collector.named("chat") + collector.named("execute_tool"):
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    assert collector.resources[0]["service.name"] == "agents"
    assert "What is" not in str(collector.spans)


@pytest.mark.long
async def test_replays_make_no_span_again(observe: Observe, collector: Collector) -> None:
    observed = observe()
    harness = observed.conversations
    calls = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(5)]
    spec = harness.spec(*calls, text_answer("5"), text_answer("6"))
    async with observed.forgetful_worker():
        conversation = await harness.client.start("Count to 5.", spec)
        await conversation.result()
        await conversation.send("And on.")
        await conversation.result()
        await collector.turns(2)
    names = list_names(collector)
    del names["storage.append"]
    assert names == {"invoke_agent": 2, "chat scripted": 7, "execute_tool add": 5}
    assert len(collector.distinct()) == len(collector.spans)
    assert len({span.trace_id for span in collector.spans}) == 2


async def test_a_turn_is_linked_to_the_span_of_its_sender(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    spec = harness.spec(text_answer("a"), text_answer("b"), text_answer("c"))
    async with observed.worker():
        with sent_from(SENDER):
            conversation = await harness.client.start("one", spec)
        await conversation.result()
        tracer = TracerProvider().get_tracer("a program")
        with tracer.start_as_current_span("its span") as span:
            await conversation.send("two")
        await conversation.result()
        with sent_from("no span"):
            await conversation.send("three")
        await conversation.result()
        await collector.turns(3)
    first, second, third = collector.named("invoke_agent")
    [link] = first.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (SENDER[3:35], SENDER[36:52])
    [link] = second.links
    assert int.from_bytes(link.span_id) == span.get_span_context().span_id
    assert not third.links


async def test_an_error_of_a_model_and_of_a_tool_is_that_of_their_spans(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    spec = harness.spec(
        tool_call_answer(("fail", {"why": "no luck"})),
        {"failures": [{"status": 401, "message": "no key"}], "content": "never"},
    )
    async with observed.worker():
        conversation = await harness.client.start("try", spec)
        with pytest.raises(TurnFailed):
            await conversation.result()
        await collector.turns(1)
    [call], [root] = collector.named("execute_tool"), collector.named("invoke_agent")
    errors = {span.name: attributes_of(span).get("error.type") for span in (call, root)}
    assert errors == {"execute_tool fail": "tool_raised", "invoke_agent": "auth"}
    requests = [attributes_of(span).get("error.type") for span in collector.named("chat")]
    assert requests == [None, "auth"]


async def test_content_is_sent_only_where_it_is_asked_for(
    observe: Observe, collector: Collector
) -> None:
    observed = observe(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    harness = observed.conversations
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    spec = harness.spec(call, text_answer("It is five."))
    async with observed.worker():
        conversation = await harness.client.start("What is 2 + 3?", spec)
        await conversation.result()
        await collector.turns(1)
    first, last = map(attributes_of, collector.named("chat"))
    assert "What is 2 + 3?" in first["gen_ai.input.messages"]
    assert '"name": "add"' in first["gen_ai.output.messages"]
    assert "It is five." in last["gen_ai.output.messages"]
    [tool] = map(attributes_of, collector.named("execute_tool"))
    assert tool["gen_ai.tool.call.arguments"] == '{"a": 2, "b": 3}'
    assert tool["gen_ai.tool.call.result"] == "5"


@pytest.mark.parametrize("ratio", ["0", "1"])
async def test_a_trace_is_sampled_as_a_whole(
    observe: Observe, collector: Collector, ratio: str
) -> None:
    observed = observe(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG=ratio)
    harness = observed.conversations
    async with observed.worker():
        conversation = await harness.client.start("hi", harness.spec(text_answer("ho")))
        await conversation.result()
        await collector.turns(int(ratio))
    assert list_names(collector)["chat scripted"] == int(ratio)
    assert list_names(collector)["invoke_agent"] == int(ratio)


async def test_attributes_are_as_long_and_as_many_as_the_limits_let_them(
    observe: Observe, collector: Collector
) -> None:
    observed = observe(OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT="4", OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="9")
    harness = observed.conversations
    async with observed.worker():
        conversation = await harness.client.start("hi", harness.spec(text_answer("ho")))
        await conversation.result()
        await collector.turns(1)
    [request] = collector.named("chat")
    assert len(request.attributes) == 9
    assert request.dropped_attributes_count > 0
    texts = [it for it in attributes_of(request).values() if isinstance(it, str)]
    assert max(map(len, texts)) == 4


async def test_a_delegated_turn_is_a_trace_that_is_linked_to_the_call(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "add"})),
        tool_call_answer(("add", {"a": 1, "b": 1})),
        text_answer("two"),
        text_answer("It is two."),
        tools=("delegate", "tests.example_tools:TOOLS"),
    )
    async with observed.worker():
        conversation = await harness.client.start("have it added", spec)
        await conversation.result()
        await collector.turns(2)
    [call] = collector.named("execute_tool delegate")
    [child] = [span for span in collector.named("invoke_agent") if span.links]
    [link] = child.links
    assert (link.trace_id, link.span_id) == (call.trace_id, call.span_id)
    assert child.trace_id != call.trace_id
    assert call.start_time_unix_nano <= child.start_time_unix_nano
    assert child.end_time_unix_nano <= call.end_time_unix_nano


async def test_a_condensed_view_is_a_span_of_its_turn(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    calls = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(6)]
    spec = harness.spec(
        *calls, text_answer("done"), condenser={"kind": "amortized", "max_size": 10}
    )
    async with observed.worker():
        conversation = await harness.client.start("count", spec)
        await conversation.result()
        await collector.turns(1)
    [root] = collector.named("invoke_agent")
    condensed = collector.named("condense")
    assert condensed
    assert {span.parent_span_id for span in condensed} == {root.span_id}


@pytest.mark.long
async def test_a_turn_that_continues_as_new_is_one_trace_from_its_message_on(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    calls = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(170)]
    async with observed.worker():
        conversation = await harness.client.start("count", harness.spec(*calls, text_answer("170")))
        first_run = (await conversation.handle.describe()).run_id
        await conversation.result()
        await collector.turns(1)
    assert (await conversation.handle.describe()).run_id != first_run
    [root] = collector.named("invoke_agent")
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    assert len(collector.named("execute_tool")) == 170
    assert root.start_time_unix_nano <= min(
        span.start_time_unix_nano for span in collector.named("chat")
    )

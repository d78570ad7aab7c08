"""The first answers that OpenAI's own client gets."""

import pytest

from tests.gateway.openai.stage import OpenAiStage


@pytest.mark.long
async def test_agents_are_models(openai_stage: OpenAiStage) -> None:
    models = [model async for model in openai_stage.anna.models.list()]
    assert [model.id for model in models] == ["adder", "asker", "broken", "sleeper", "speaker"]
    assert (await openai_stage.anna.models.retrieve("asker")).owned_by == "perdure"


async def test_a_response_has_what_the_agent_says_thinks_and_does(
    openai_stage: OpenAiStage,
) -> None:
    response = await openai_stage.anna.responses.create(model="adder", input="2 + 3?")
    assert (response.status, response.error, response.model) == ("completed", None, "adder")
    assert [item.type for item in response.output] == [
        "message",
        "reasoning",
        "mcp_call",
        "message",
    ]
    said, thought, called, answered = (item.model_dump() for item in response.output)
    assert (said["content"][0]["text"], said["phase"]) == ("I add.", "commentary")
    assert thought["content"][0]["text"] == "Two numbers."
    assert (called["name"], called["arguments"]) == ("add", '{"a": 2, "b": 3}')
    assert (called["output"], called["error"], called["status"]) == ("5", None, "completed")
    assert (answered["content"][0]["text"], answered["phase"]) == ("It is 5.", "final_answer")
    assert response.usage is not None
    assert (response.usage.total_tokens, response.usage.input_tokens_details.cached_tokens) == (
        10,
        2,
    )

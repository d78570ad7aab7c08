"""The agent that a client brings is taken in part, and kept without its secrets."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.gateway.openhands.bodies import (
    ChangeBody,
    ClientTool,
    Policy,
    SentMessage,
    StartBody,
    policy_of,
)
from perdure.gateway.openhands.record import make_record
from perdure.gateway.openhands.start import (
    find_unserved,
    join_tags,
    list_changes,
    list_tools,
    split_tags,
)

LLM: dict[str, Any] = {
    "model": "openai/gpt-5",
    "api_key": "sk-violet",
    "aws_access_key_id": "violet",
    "aws_secret_access_key": "violet",
    "aws_region_name": "eu",
    "extra_headers": {"Authorization": "violet"},
    "litellm_extra_body": {"key": "violet"},
    "max_input_tokens": 1000,
    "base_url": None,
}
AGENT = {
    "kind": "Agent",
    "llm": LLM,
    "condenser": {"kind": "LLMSummarizingCondenser", "llm": LLM, "max_size": 80, "keep_first": 4},
    "agent_context": {"secrets": {"A": "violet"}, "system_message_suffix": "Be brief."},
    "mcp_config": {"mcpServers": {"x": {"env": {"TOKEN": "violet"}}}},
    "tools": [{"name": "terminal", "params": {}}],
}


def changes_of(**fields: Any) -> dict[str, Any]:
    body = StartBody.model_validate({"agent": AGENT, **fields})
    return dict(list_changes(Agent("m", instructions="Be careful."), body))


def test_nothing_secret_is_kept_and_the_rest_is() -> None:
    record = make_record(StartBody.model_validate({"agent": AGENT}))
    assert "violet" not in record.model_dump_json()
    kept = record.agent["llm"]
    assert (kept["model"], kept["aws_region_name"], kept["max_input_tokens"]) == (
        "openai/gpt-5",
        "eu",
        1000,
    )
    assert (kept["api_key"], kept["extra_headers"], record.agent["mcp_config"]) == (None, {}, {})


def test_the_client_decides_tools_limits_and_what_is_condensed() -> None:
    changes = changes_of(max_iterations=9, tags={"team": "red"})
    assert changes["tools"] == ("terminal", "think", "finish")
    assert changes["limits"]["max_iterations"] == 9
    assert changes["tags"] == ("team=red",)
    assert changes["instructions"] == "Be careful.\n\nBe brief."
    assert (changes["condenser"]["max_size"], changes["condenser"]["keep_first"]) == (80, 4)


def test_stuck_detection_is_off_or_has_the_clients_numbers() -> None:
    off = changes_of(stuck_detection=False)["stuck"]
    assert set(off.values()) == {0}
    numbers = {"action_observation": 5, "alternating_pattern": 8}
    assert changes_of(stuck_detection_thresholds=numbers)["stuck"]["alternating"] == 8


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"client_tools": [{"name": "x"}]}, "Tools of the client"),
        ({"plugins": [{"source": "x"}]}, "Plugins"),
        ({"agent": AGENT}, "MCP servers"),
        ({"agent": {"kind": "ACPAgent"}}, "'ACPAgent'"),
    ],
)
def test_what_is_not_served_is_said(fields: dict[str, Any], words: str) -> None:
    body = StartBody.model_validate({"agent": {"kind": "Agent"}, **fields})
    assert words in (find_unserved(body) or "")


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^There is no tool 'browser_tool_set' here"):
        list_tools([ClientTool(name="browser_tool_set")])


def test_tags_are_words_of_ours_and_back() -> None:
    tags = {"team": "red=blue", "nightly": ""}
    assert split_tags(join_tags(tags)) == tags
    assert split_tags(("Ünder=1", "a-b=2", "plain")) == {"plain": ""}


@pytest.mark.parametrize(
    "policy",
    [
        {"kind": "NeverConfirm"},
        {"kind": "AlwaysConfirm"},
        {"kind": "ConfirmRisky", "threshold": "MEDIUM", "confirm_unknown": False},
    ],
)
def test_a_policy_is_ours_and_back(policy: dict[str, Any]) -> None:
    assert policy_of(Policy.model_validate(policy).confirmation()) == policy


@pytest.mark.parametrize("title", ["", "   ", "x" * 201])
def test_a_title_is_a_line_of_words(title: str) -> None:
    with pytest.raises(ValidationError):
        ChangeBody.model_validate({"title": title})


def test_a_message_has_its_texts_and_images() -> None:
    parts = [
        {"type": "text", "text": "One.", "cache_prompt": False},
        {"type": "image", "image_urls": ["data:image/png;base64,aa"]},
        {"type": "text", "text": "Two."},
    ]
    message = SentMessage.model_validate(json.loads(json.dumps({"role": "user", "content": parts})))
    assert (message.text, message.images) == ("One.\nTwo.", ("data:image/png;base64,aa",))

"""Which of Anthropic's models are called directly, and what is known of them: as litellm knows."""

from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.spec import ModelSpec
from perdure.models import price_table
from perdure.models.anthropic.answer import convert_usage
from perdure.models.anthropic.route import (
    ANTHROPIC_VARIABLES,
    AnthropicRoute,
    find_route,
    list_cost,
)
from perdure.models.direct.route import LITELLM_VARIABLES
from perdure.models.litellm import route as litellm_route
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import ModelRefused

# Of litellm, as it builds its types.
pytestmark = pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier")

SERVER = "http://127.0.0.1:8000"
HOSTED = "https://api.anthropic.com/v1/messages"
UNLISTED = (
    "some-model",
    "story",
    "claude",
    "claude-by-a-gateway",
    "MiniMax-M2",
    "deepseek-v3.2",
    "kimi-k2-thinking",
    "glm-4.7-of-mine",
    "claude-2",
    "claude-instant-1",
    "claude-3-7-sonnet-of-mine",
    "claude-opus-9",
    "claude-sonnet-4.5",
    "claude-opus-4-1-20250805",
    "gpt-4o",
    "GPT-4o",
    "org/some-model",
    "fable-of-mine",
)


@pytest_asyncio.fixture(scope="module")
async def library(litellm: LiteLLM) -> Any:
    return await litellm.load()


def listed_names() -> list[str]:
    prices = price_table.load_prices().items()
    return [name for name, entry in prices if entry.get("litellm_provider") == "anthropic"]


def listed_routes() -> dict[str, AnthropicRoute]:
    routes = {name: find_route(ModelSpec(name=name), {}) for name in listed_names()}
    return {name: route for name, route in routes.items() if route is not None}


@pytest.mark.long
async def test_a_direct_route_knows_what_litellm_knows(library: Any) -> None:
    names = [*listed_names(), *(f"anthropic/{name}" for name in (*listed_names(), *UNLISTED))]
    served = set()
    for name in names:
        spec = ModelSpec(name=name, api_base=SERVER)
        if (route := find_route(spec, {})) is not None:
            served.add(name.removeprefix("anthropic/"))
            expected = litellm_route.find_route(library, spec)
            assert route.capabilities == expected.capabilities, name
            assert bool(route.listed) == expected.priced, name
            assert expected.key_variable == "ANTHROPIC_API_KEY"
            limit = library.AnthropicConfig.get_max_tokens_for_model(route.model)
            assert route.max_tokens == limit == (expected.max_output_tokens or 4096), name
            resolved = library.get_llm_provider(name, api_base=SERVER)[:2]
            assert resolved == (route.model, "anthropic")
    assert len(served & {*listed_names()}) > 20, "nearly all of Anthropic's models"
    assert served & {*UNLISTED} == {
        *("some-model", "story", "claude", "claude-by-a-gateway", "MiniMax-M2", "deepseek-v3.2"),
        *("kimi-k2-thinking", "glm-4.7-of-mine", "fable-of-mine"),
    }


@pytest.mark.parametrize(
    ("name", "api_base", "url"),
    [
        ("anthropic/claude-sonnet-4-5", None, HOSTED),
        ("claude-sonnet-4-5", None, HOSTED),
        ("claude-sonnet-4-5", SERVER, f"{SERVER}/v1/messages"),
        ("anthropic/m", SERVER, f"{SERVER}/v1/messages"),
        ("anthropic/m", f"{SERVER}/v1/messages", f"{SERVER}/v1/messages"),
        ("anthropic/m", f"{SERVER}/v1", f"{SERVER}/v1/v1/messages"),
        ("anthropic/m", f"{SERVER}/", f"{SERVER}//v1/messages"),
        ("anthropic/m", None, None),
        ("anthropic/m", "http://user:word@localhost", None),
        ("anthropic/m", "http://localhost?version=2", None),
        ("anthropic/claude-opus-9", None, None),
        ("claude-opus-9", None, None),
        ("openai/claude-sonnet-4-5", SERVER, None),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", None, None),
        ("vertex_ai/claude-sonnet-4-5@20250929", None, None),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", None, None),
        ("azure_ai/claude-sonnet-4-5", SERVER, None),
        ("openrouter/anthropic/claude-sonnet-4.5", None, None),
    ],
)
def test_only_models_whose_requests_are_known_go_directly(
    name: str, api_base: str | None, url: str | None
) -> None:
    route = find_route(ModelSpec(name=name, api_base=api_base), {})
    assert (route and route.url) == url


def test_the_environment_may_name_another_server() -> None:
    variables = {"ANTHROPIC_API_BASE": SERVER, "ANTHROPIC_BASE_URL": "http://other"}
    for spec in (ModelSpec(name="anthropic/m"), ModelSpec(name="claude-sonnet-4-5")):
        route = find_route(spec, variables)
        assert route is not None
        assert route.url == f"{SERVER}/v1/messages"
    second = find_route(ModelSpec(name="anthropic/m"), {"ANTHROPIC_BASE_URL": "http://other"})
    assert second is not None
    assert second.url == "http://other/v1/messages"


@pytest.mark.parametrize("variable", [*LITELLM_VARIABLES, *ANTHROPIC_VARIABLES])
def test_what_only_litellm_obeys_leads_to_litellm(variable: str) -> None:
    spec = ModelSpec(name="anthropic/claude-sonnet-4-5")
    assert find_route(spec, {variable: ""}) is not None
    assert find_route(spec, {variable: "true"}) is None


def test_a_token_of_a_persons_account_leads_to_litellm() -> None:
    spec = ModelSpec(name="anthropic/claude-sonnet-4-5")
    assert find_route(spec, {"ANTHROPIC_API_KEY": "sk-ant-api03-x"}) is not None
    assert find_route(spec, {"ANTHROPIC_API_KEY": "sk-ant-oat01-x"}) is None


@pytest.mark.parametrize(
    ("name", "temperature", "is_direct"),
    [
        ("claude-sonnet-4-5", 0.0, True),
        ("claude-opus-4-6", 0.5, True),
        ("claude-opus-4-7", 0.5, False),
        ("claude-opus-4-7", 1.0, True),
        ("claude-opus-4-7", None, True),
        ("claude-sonnet-5", 0.5, False),
        ("fable-of-mine", 0.5, False),
        ("some-model", 0.5, True),
    ],
)
def test_a_temperature_that_litellm_refuses_leads_to_litellm(
    name: str, temperature: float | None, is_direct: bool
) -> None:
    spec = ModelSpec(name=f"anthropic/{name}", temperature=temperature, api_base=SERVER)
    assert (find_route(spec, {}) is not None) is is_direct


@pytest.mark.parametrize("address", ["", "localhost:8000", "http://", "http://a:b/v1", "ftp://a"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ModelRefused, match="is no address: write it like http://HOST"):
        find_route(ModelSpec(name="anthropic/m", api_base=address), {})


USAGES: list[dict[str, Any]] = [
    {"input_tokens": 1000, "output_tokens": 100},
    {"input_tokens": 0, "output_tokens": 0},
    {"input_tokens": 0, "cache_read_input_tokens": 500, "output_tokens": 1},
    {"input_tokens": 100_000, "output_tokens": 7},
    {"input_tokens": 100_001, "output_tokens": 7},
    {
        "input_tokens": 10,
        "cache_read_input_tokens": 190_000,
        "cache_creation_input_tokens": 20_000,
        "output_tokens": 500,
        "output_tokens_details": {"thinking_tokens": 300},
    },
    {
        "input_tokens": 10,
        "cache_creation_input_tokens": 700,
        "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 200},
        "output_tokens": 50,
    },
    {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 200_000},
        "output_tokens": 50,
        "inference_geo": "us",
        "service_tier": "standard",
    },
    {"input_tokens": 10, "output_tokens": 50, "inference_geo": "global", "speed": "fast"},
    {"input_tokens": 10, "output_tokens": 50, "inference_geo": "not_available"},
    {
        "input_tokens": 1,
        "output_tokens": 1,
        "iterations": [{"input_tokens": 7, "output_tokens": 3}],
    },
]


@pytest.mark.long
@pytest.mark.parametrize("fields", USAGES, ids=str)
async def test_the_cost_is_what_litellm_counts(library: Any, fields: dict[str, Any]) -> None:
    usage_object = library.AnthropicConfig().calculate_usage(fields, reasoning_content=None)
    tokens = convert_usage(fields)
    for name in ("prompt_tokens", "completion_tokens"):
        assert tokens[name] == getattr(usage_object, name)
    routes = listed_routes()
    assert len(routes) > 20
    for name, route in routes.items():
        expected = sum(library.cost_per_token(model=name, usage_object=usage_object))
        assert list_cost(route.listed, tokens) == pytest.approx(expected, rel=1e-9, abs=1e-15), name
        response = {"id": "r", "model": name, "choices": [], "usage": usage_object}
        total = library.completion_cost(
            library.ModelResponse(**response), model=name, custom_llm_provider="anthropic"
        )
        assert list_cost(route.listed, tokens) == pytest.approx(total, rel=1e-9, abs=1e-15), name

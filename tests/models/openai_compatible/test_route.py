"""Which models are called directly, and what is known of them: what litellm would know."""

from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.spec import ModelSpec
from perdure.models import price_table
from perdure.models.direct.route import LITELLM_VARIABLES
from perdure.models.litellm import route as litellm_route
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import ModelRefused
from perdure.models.openai_compatible.route import find_route, list_cost
from perdure.models.stream_accumulator import parse_usage

# Of litellm, as it builds its types.
pytestmark = pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier")

SERVER = "http://127.0.0.1:8000/v1"
UNLISTED = (
    "some-model",
    "org/some-model",
    "meta-llama/Llama-3.1-8B-Instruct",
    "GPT-4o",
    "gpt-4o-2031-01-01",
    "gpt-oss-120b",
    "qwen3:30b-a3b",
    "claude-opus-4-9",
    "org/claude-opus-4-9",
    "claude-by-a-gateway",
    "my-gpt-5",
    "gpt-5-of-mine",
    "gpt-6",
    "o9",
    "deepseek-v3.2",
    "MiniMax-M2",
    "ft:gpt-4o:mine",
    "responses/some-model",
)


@pytest_asyncio.fixture(scope="module")
async def library(litellm: LiteLLM) -> Any:
    return await litellm.load()


def listed_names() -> list[str]:
    return [name for name in price_table.load_prices() if name != "fallback_generalizations"]


@pytest.mark.long
async def test_a_direct_route_knows_what_litellm_knows(library: Any) -> None:
    direct = 0
    for name in (*UNLISTED, *listed_names()):
        spec = ModelSpec(name=f"openai/{name}", api_base=SERVER)
        if (route := find_route(spec, {})) is not None:
            expected = litellm_route.find_route(library, spec)
            assert route.capabilities == expected.capabilities, name
            assert bool(route.listed) == expected.priced, name
            assert library.get_llm_provider(spec.name, api_base=SERVER)[:2] == (name, "openai")
            direct += 1
    assert direct > 2000, "most names are those of other providers, served by one's own server"


async def test_openais_own_models_are_known_as_litellm_knows_them(library: Any) -> None:
    direct = []
    for name in listed_names():
        for spec in (ModelSpec(name=name), ModelSpec(name=f"openai/{name}")):
            if (route := find_route(spec, {})) is not None:
                expected = litellm_route.find_route(library, spec)
                assert route.capabilities == expected.capabilities, name
                assert library.get_llm_provider(spec.name)[:2] == (name, "openai")
                direct.append(spec.name)
    assert {"gpt-4o", "openai/gpt-4o", "gpt-4.1", "openai/gpt-4o-mini", "gpt-3.5-turbo"} < {*direct}


@pytest.mark.parametrize(
    ("name", "api_base", "url"),
    [
        ("openai/m", SERVER, f"{SERVER}/chat/completions"),
        ("openai/org/m", f"{SERVER}/", f"{SERVER}/chat/completions"),
        ("openai/gpt-4o", None, "https://api.openai.com/v1/chat/completions"),
        ("gpt-4o", None, "https://api.openai.com/v1/chat/completions"),
        ("openai/gpt-4o", SERVER, f"{SERVER}/chat/completions"),
        ("gpt-4o", SERVER, None),
        ("openai/m", None, None),
        ("openai/m", "https://eu.api.openai.com/v1", None),
        ("openai/gpt-5", SERVER, None),
        ("openai/gpt-5", None, None),
        ("openai/o3-mini", None, None),
        ("openai/gpt-4o-audio-preview-2025-06-03", None, None),
        ("openai/gpt-4o-search-preview", None, None),
        ("openai/ft:gpt-4o-2024-08-06", None, None),
        ("openai/claude-opus-4-9", SERVER, None),
        ("openai/m", "http://user:word@localhost/v1", None),
        ("openai/m", "http://localhost/v1?version=2", None),
        ("anthropic/claude-sonnet-4-5", SERVER, None),
        ("hosted_vllm/m", SERVER, None),
        ("nobody/m", None, None),
        ("m", None, None),
    ],
)
def test_only_requests_that_litellm_sends_as_they_are_go_directly(
    name: str, api_base: str | None, url: str | None
) -> None:
    route = find_route(ModelSpec(name=name, api_base=api_base), {})
    assert (route and route.url) == url


def test_the_environment_may_name_another_server() -> None:
    variables = {"OPENAI_BASE_URL": SERVER, "OPENAI_API_BASE": "http://other/v1"}
    route = find_route(ModelSpec(name="openai/m"), variables)
    assert route is not None
    assert route.url == f"{SERVER}/chat/completions"


@pytest.mark.parametrize("variable", LITELLM_VARIABLES)
def test_what_only_litellm_obeys_leads_to_litellm(variable: str) -> None:
    spec = ModelSpec(name="openai/m", api_base=SERVER)
    assert find_route(spec, {variable: ""}) is not None
    assert find_route(spec, {variable: "true"}) is None


@pytest.mark.parametrize("address", ["", "localhost:8000", "http://", "http://a:b/v1", "ftp://a"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ModelRefused, match="is no address: write it like http://HOST"):
        find_route(ModelSpec(name="openai/m", api_base=address), {})


USAGES: list[dict[str, Any]] = [
    {"prompt_tokens": 1000, "completion_tokens": 100},
    {"prompt_tokens": 0, "completion_tokens": 0},
    {
        "prompt_tokens": 1000,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
    {
        "prompt_tokens": 300_000,
        "completion_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 200_000, "text_tokens": 300_000},
        "completion_tokens_details": {"reasoning_tokens": 300, "text_tokens": 200},
    },
    {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 30},
    },
    {"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 60},
    {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 60}},
]


@pytest.mark.parametrize("fields", USAGES, ids=str)
async def test_the_cost_is_what_litellm_counts(library: Any, fields: dict[str, Any]) -> None:
    usage = parse_usage(fields)
    priced = 0
    for name in listed_names():
        route = find_route(ModelSpec(name=f"openai/{name}"), {})
        if route is None or not route.listed:
            continue
        usage_object = library.Usage(**fields)
        expected = sum(library.cost_per_token(model=f"openai/{name}", usage_object=usage_object))
        assert list_cost(route.listed, usage) == pytest.approx(expected, rel=1e-9, abs=1e-15), name
        response = {"id": "r", "model": name, "choices": [], "usage": usage_object}
        total = library.completion_cost(
            library.ModelResponse(**response), model=f"openai/{name}", custom_llm_provider="openai"
        )
        assert list_cost(route.listed, usage) == pytest.approx(total, rel=1e-9, abs=1e-15), name
        priced += 1
    assert priced > 20

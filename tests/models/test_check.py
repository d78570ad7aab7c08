"""The check of a model's name and of its provider's key, without litellm."""

import subprocess
import sys

import pytest

from perdure.agent.spec import ModelSpec
from perdure.errors import Invalid
from perdure.models.check import check_name, has_price
from perdure.models.keys import find_missing_key


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4o",
        "gpt-4o",
        "claude-sonnet-4-5",
        "anthropic/claude-sonnet-4-5",
        "gemini/gemini-2.5-pro",
        "azure/my-deployment",
        "ollama/llama3",
        "hosted_vllm/anything",
        "openrouter/someone/something",
        "openai/ft:gpt-4o-2024-08-06:me::id",
        "scripted:story.json",
        "replay:log.jsonl",
        "python:my.module:model",
    ],
)
def test_a_name_that_may_exist_passes_without_a_remark(name: str) -> None:
    assert check_name(ModelSpec(name=name)) == ""


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("openai/gpt-4oo", "Did you mean openai/gpt-4o"),
        ("gpt4-o", "Did you mean gpt-4"),
        ("anthropic/claude-sonet-4-5", "Did you mean anthropic/claude-sonnet-4-5"),
        ("opneai/gpt-4o", "Did you mean openai/gpt-4o?"),
        ("gemni/gemini-2.5-pro", "Did you mean gemini/gemini-2.5-pro"),
        ("nobody/knows", "Write PROVIDER/MODEL"),
        ("zzzzz", "Write PROVIDER/MODEL"),
        ("https://x.org/v1", "--model openai/NAME --api-base https://x.org/v1"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_one_that_was_meant(name: str, hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_name(ModelSpec(name=name))
    assert name in str(refused.value)
    assert hint in refused.value.hint


def test_a_newer_version_than_the_list_has_passes_with_a_remark() -> None:
    remark = check_name(ModelSpec(name="anthropic/claude-sonnet-99"))
    assert "litellm does not list anthropic/claude-sonnet-99" in remark
    assert "The nearest is anthropic/claude-" in remark


@pytest.mark.parametrize(
    "model",
    [
        ModelSpec(name="openai/gpt-4oo", api_base="http://127.0.0.1:1/v1"),
        ModelSpec(name="openai/gpt-4oo", max_input_tokens=1000),
    ],
)
def test_a_server_of_ones_own_and_a_stated_size_allow_any_name(model: ModelSpec) -> None:
    assert check_name(model) == ""


def test_a_variable_that_leads_to_another_server_allows_any_name_and_needs_no_key() -> None:
    model = ModelSpec(name="openai/gpt-4oo")
    assert check_name(model, {"OPENAI_API_BASE"}) == ""
    assert find_missing_key(model, {"OPENAI_API_BASE"}) is None


def test_an_address_that_is_none_is_refused() -> None:
    for address in ("", "localhost:8000"):
        with pytest.raises(Invalid, match="is no address"):
            check_name(ModelSpec(name="openai/m", api_base=address))


def test_a_bare_name_at_an_address_is_refused_with_its_provider() -> None:
    with pytest.raises(Invalid, match="has no provider") as refused:
        check_name(ModelSpec(name="llama", api_base="http://127.0.0.1:1/v1"))
    assert "openai/llama" in refused.value.hint


@pytest.mark.parametrize(
    ("model", "variables", "missing"),
    [
        (ModelSpec(name="openai/gpt-4o"), {"PATH"}, "OPENAI_API_KEY"),
        (ModelSpec(name="gpt-4o"), set(), "OPENAI_API_KEY"),
        (ModelSpec(name="claude-sonnet-4-5"), {"OPENAI_API_KEY"}, "ANTHROPIC_API_KEY"),
        (ModelSpec(name="anthropic/x"), {"ANTHROPIC_AUTH_TOKEN"}, None),
        (ModelSpec(name="gemini/gemini-2.5-pro"), {"GOOGLE_API_KEY"}, None),
        (ModelSpec(name="openai/x", api_base="http://127.0.0.1:1"), set(), None),
        (ModelSpec(name="bedrock/x"), set(), None),
        (ModelSpec(name="scripted:x"), set(), None),
    ],
)
def test_a_key_is_missing_where_a_known_provider_has_none(
    model: ModelSpec, variables: set[str], missing: str | None
) -> None:
    assert find_missing_key(model, variables) == missing


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (ModelSpec(name="openai/gpt-4o"), True),
        (ModelSpec(name="openai/gpt-4o", api_base="http://127.0.0.1:1/v1"), True),
        (ModelSpec(name="claude-sonnet-4-5"), True),
        (ModelSpec(name="bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0"), True),
        (ModelSpec(name="ollama_chat/a-model-of-mine"), True),
        (ModelSpec(name="scripted:story.json"), True),
        (ModelSpec(name="python:my.module:model"), True),
        (ModelSpec(name="openai/a-model-of-mine", input_price=0.0), True),
        (ModelSpec(name="openai/a-model-of-mine", api_base="http://127.0.0.1:1/v1"), False),
        (ModelSpec(name="hosted_vllm/a-model-of-mine"), False),
    ],
)
def test_a_price_is_known_by_the_list_the_fields_or_the_model_itself(
    model: ModelSpec, known: bool
) -> None:
    assert has_price(model) is known


def test_the_check_imports_no_litellm() -> None:
    program = (
        "import sys; from perdure.models.check import check_name; "
        "from perdure.agent.spec import ModelSpec; check_name(ModelSpec(name='openai/gpt-4o')); "
        "print('litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"

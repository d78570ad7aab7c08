"""Fallback models answer when the model cannot."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Request,
)
from perdure.models.router import ModelRouter
from tests.models.requests import text_in, user

FAILURES: dict[str, dict[str, Any]] = {
    "limited": {"status": 429, "retry_after": 9},
    "broken": {"status": 500},
    "cut": {"status": 503, "partial": True},
    "key": {"status": 401},
    "quota": {"status": 402},
    "missing": {"status": 404},
    "policy": {"status": 400, "code": "content_policy_violation"},
    "bad": {"status": 400},
    "long": {"status": 400, "code": "context_length_exceeded"},
    "over": {"status": 400, "code": "script_exhausted"},
}
ENDS = ("long", "over")

Ask: TypeAlias = Callable[..., Awaitable[Completion]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Call the model of the first script, with the others as fallbacks."""
    scripts: dict[str, Any] = {
        name: {"answers": [{"content": "half of it", "failures": [failure] * 2}]}
        for name, failure in FAILURES.items()
    }
    scripts["good"] = {"answers": [{"content": "Here.", "usage": {"cost": 0.5}}]}
    path = tmp_path / "models.json"
    path.write_text(json.dumps(scripts))

    async def asking(*names: str, texts: list[str] | None = None) -> Completion:
        first, *others = (ModelSpec(name=f"scripted:{path}#{name}") for name in names)
        growth: list[str] = [] if texts is None else texts
        request = Request(first, [user("go")], fallbacks=others)
        return await ModelRouter().complete(request, growth.append)

    return asking


@pytest.mark.parametrize("name", [name for name in FAILURES if name not in ENDS])
async def test_a_fallback_answers_when_the_model_cannot(ask: Ask, name: str) -> None:
    answer = await ask(name, "over", "good")
    assert text_in(answer) == "Here."
    assert answer.model.endswith("#good")
    assert (answer.usage.model, answer.usage.cost) == (answer.model, 0.5)


@pytest.mark.parametrize("name", ENDS)
async def test_fallbacks_are_not_called_for_a_long_prompt_or_a_finished_script(
    ask: Ask, name: str
) -> None:
    with pytest.raises(ModelError) as raised:
        await ask(name, "good")
    assert raised.value.code == {"long": "context_overflow", "over": "script_exhausted"}[name]


async def test_fallbacks_are_not_called_when_the_model_answers(ask: Ask) -> None:
    answer = await ask("good", "broken")
    assert answer.model.endswith("#good")


async def test_a_fallbacks_answer_replaces_an_interrupted_one(ask: Ask) -> None:
    texts: list[str] = []
    await ask("cut", "good", texts=texts)
    assert texts == ["half o", "Here."]


@pytest.mark.parametrize(
    ("names", "kind", "code"),
    [
        (("limited", "broken"), ModelUnavailable, "rate_limit"),
        (("limited", "key"), ModelUnavailable, "rate_limit"),
        (("key", "limited"), ModelUnavailable, "rate_limit"),
        (("limited", "long"), ModelUnavailable, "rate_limit"),
        (("key", "long"), ContextOverflow, "context_overflow"),
        (("key", "quota"), ModelRefused, "auth"),
    ],
)
async def test_the_most_recoverable_error_is_raised_when_no_model_answers(
    ask: Ask, names: tuple[str, ...], kind: type[ModelError], code: str
) -> None:
    with pytest.raises(kind) as raised:
        await ask(*names)
    assert raised.value.code == code
    assert getattr(raised.value, "retry_after", 9) == 9
    assert str(raised.value).endswith(".")


async def test_a_refusal_by_all_names_model_and_fallback(ask: Ask) -> None:
    with pytest.raises(ModelRefused, match=r"#key refused the key .*\. Nor .* .*#quota has no"):
        await ask("key", "quota")


async def test_a_model_without_fallbacks_refuses_in_its_own_words(ask: Ask) -> None:
    with pytest.raises(ModelRefused) as refused:
        await ask("key")
    assert "Nor did a fallback" not in str(refused.value)

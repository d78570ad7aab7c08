"""From a received answer to a completion: its checks, its cost."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.usage import Usage
from perdure.models.model import ModelRefused, ModelUnavailable, Request
from perdure.models.provider_errors import convert_error_object
from perdure.models.stream_accumulator import StreamAccumulator, parse_usage


def add_chunk(answer: StreamAccumulator, chunk: Any, spec: ModelSpec, key_variable: str) -> None:
    """Add a chunk, or a whole completion. Raises ModelError for one that is an error, or none."""
    if not isinstance(chunk, dict):
        detail = f"{spec.name} answered with no JSON object: try again later."
        raise ModelUnavailable("malformed", detail)
    if chunk.get("error"):
        raise convert_error_object(chunk["error"], spec.name, key_variable)
    answer.add(chunk)


def check_complete(answer: StreamAccumulator, spec: ModelSpec) -> None:
    """Raise ModelError if the answer is empty, interrupted or filtered."""
    if not answer.has_choice:
        detail = f"{spec.name} answered with no choices: try again later."
        raise ModelUnavailable("malformed", detail)
    if answer.finish_reason is None:
        detail = f"The answer of {spec.name} broke off: try again later."
        raise ModelUnavailable("connection", detail)
    if answer.finish_reason == "content_filter" and answer.is_empty:
        detail = f"The provider of {spec.name} filtered the whole answer"
        raise ModelRefused("content", f"{detail}: rephrase the last message.")


def build_completion(
    request: Request,
    answer: StreamAccumulator,
    latency: float,
    list_cost: Callable[[Usage], float] | None,
) -> Completion:
    """Build the completion; `list_cost` is the cost by a list of prices that has the model."""
    usage = parse_usage(answer.usage)
    if answer.usage:
        usage = add_cost(usage, request.model, list_cost)
    return Completion(
        id=answer.id or str(uuid4()),
        model=request.model.name,
        message=answer.message(tool_call_ids(request.messages) if answer.calls else ()),
        finish_reason=answer.finish_reason,
        usage=usage.model_copy(update={"latency": latency}),
        received=datetime.now(UTC).strftime(TIMESTAMP_FORMAT),
    )


def add_cost(usage: Usage, spec: ModelSpec, list_cost: Callable[[Usage], float] | None) -> Usage:
    """Add the cost by the spec's prices or by the list's; without both the usage is unpriced."""
    if spec.input_price is not None or spec.output_price is not None:
        prompt = usage.prompt_tokens * (spec.input_price or 0)
        cost = (prompt + usage.completion_tokens * (spec.output_price or 0)) / 1e6
    elif list_cost is not None:
        cost = list_cost(usage)
    else:
        tokens = usage.prompt_tokens + usage.completion_tokens
        return usage.model_copy(update={"unpriced_tokens": tokens})
    return usage.model_copy(update={"cost": cost})


def tool_call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    calls = [message["tool_calls"] for message in messages if "tool_calls" in message]
    return {str(call.get("id")) for group in calls for call in group or ()}

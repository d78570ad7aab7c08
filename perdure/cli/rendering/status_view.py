"""The status of a conversation as lines of text."""

from collections.abc import Iterator

from perdure.agent.loop.start import ConversationStatus
from perdure.events.usage import Usage


def status_lines(status: ConversationStatus) -> Iterator[str]:
    for name, value in _status_fields(status):
        yield f"{name:<12} {value}"


def _status_fields(status: ConversationStatus) -> Iterator[tuple[str, str]]:
    lines = {
        "title": status.title,
        "status": status.status,
        "reason": status.reason,
        "trouble": status.trouble,
        "turn": f"{status.turn}, {status.iterations} answers of the model",
        "events": f"{status.next_seq}, {status.shown} of them in view ({status.tokens:,} tokens)",
        "waiting": f"{status.waiting} not in the log yet" if status.waiting else None,
        "model": status.model,
        "tags": ", ".join(status.tags),
        "tokens": _describe_tokens(status.spent),
        "cost": f"${status.spent.cost:.4f}",
    }
    yield from ((name, value) for name, value in lines.items() if value)
    if len(status.spent_on) > 1:
        for model, spent in status.spent_on.items():
            yield "", f"{model}: {_describe_tokens(spent)}, ${spent.cost:.4f}"
    for call in status.pending:
        suffix = ", waits for you" if call.asks else ""
        yield (
            "pending",
            f"{call.tool_call_id} {call.tool_name}, seq {call.seq}, risk {call.risk}{suffix}",
        )


def _describe_tokens(usage: Usage) -> str:
    cache_counts = {"from the cache": usage.cached_tokens, "to the cache": usage.cache_write_tokens}
    kinds = [f"{count:,} {kind}" for kind, count in cache_counts.items() if count]
    prompt = f"{usage.prompt_tokens:,} in" + (f" ({', '.join(kinds)})" if kinds else "")
    reasoning = f" ({usage.reasoning_tokens:,} of reasoning)" if usage.reasoning_tokens else ""
    return f"{prompt}, {usage.completion_tokens:,} out{reasoning}"

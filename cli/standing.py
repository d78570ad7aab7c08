"""Where a conversation stands, as a person reads it."""

from collections.abc import Iterator

from agent.start import Snapshot
from events.usage import Usage


def lines_of(found: Snapshot) -> Iterator[str]:
    for name, value in _told(found):
        yield f"{name:<12} {value}"


def _told(found: Snapshot) -> Iterator[tuple[str, str]]:
    lines = {
        "title": found.title,
        "status": found.status,
        "reason": found.reason,
        "trouble": found.trouble,
        "turn": f"{found.turn}, {found.iterations} answers of the model",
        "events": f"{found.next_seq}, {found.shown} of them in view ({found.tokens:,} tokens)",
        "waiting": f"{found.waiting} not in the log yet" if found.waiting else None,
        "model": found.model,
        "tags": ", ".join(found.tags),
        "tokens": _tokens(found.spent),
        "cost": f"${found.spent.cost:.4f}",
    }
    yield from ((name, value) for name, value in lines.items() if value)
    if len(found.spent_on) > 1:
        for on, spent in found.spent_on.items():
            yield "", f"{on}: {_tokens(spent)}, ${spent.cost:.4f}"
    for one in found.pending:
        asks = ", waits for you" if one.asks else ""
        yield "pending", f"{one.tool_call_id} {one.tool_name}, seq {one.seq}, risk {one.risk}{asks}"


def _tokens(spent: Usage) -> str:
    """How many there were of each kind."""
    read = {"from the cache": spent.cached_tokens, "to the cache": spent.cache_write_tokens}
    of = [f"{count:,} {kind}" for kind, count in read.items() if count]
    prompt = f"{spent.prompt_tokens:,} in" + (f" ({', '.join(of)})" if of else "")
    thought = f" ({spent.reasoning_tokens:,} of reasoning)" if spent.reasoning_tokens else ""
    return f"{prompt}, {spent.completion_tokens:,} out{thought}"

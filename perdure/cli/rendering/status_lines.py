"""The lines of `perdure status`, and what they say of waits and troubles."""

import re
from collections.abc import Iterator
from typing import Any

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.cli.output import escape_controls
from perdure.cli.questions import describe_question
from perdure.cli.workspaces import describe_workspace, find_workspace
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.status import (
    ModelRetry,
    StatusDetail,
    WaitDetail,
    describe_loading,
    describe_retry,
    describe_time,
    describe_wait,
)
from perdure.events.usage import Usage, describe_cost
from perdure.settings.settings import load_settings
from perdure.wording import count


def status_fields(status: ConversationStatus, owner: str | None = None) -> dict[str, Any]:
    """Return the fields for programs, with the folder on this machine as the workspace.

    `owner` is the user whose conversation it is, if not that of the settings.
    """
    place = (status.conversation_id, status.workspace, owner)
    workspace = find_workspace(load_settings(), *place)
    return {**status.model_dump(mode="json"), "workspace": workspace}


def status_lines(status: ConversationStatus, owner: str | None = None) -> Iterator[str]:
    for name, value in _describe_fields(status, owner):
        yield f"{name:<12} {value}"


def _describe_fields(status: ConversationStatus, owner: str | None) -> Iterator[tuple[str, str]]:
    place = (status.conversation_id, status.workspace, owner)
    view_tokens = count(status.tokens, "token")
    answers = count(status.iterations, "answer of the model", "answers of the model")
    lines = {
        "title": status.title,
        "status": status.phase or status.status,
        "reason": status.reason,
        "loads": describe_loading(status.detail.loading) if status.detail else "",
        "model fails": describe_retry(retry) if (retry := _find_retry(status)) else "",
        "waits for": _describe_wait(status),
        "asks": _describe_question(status),
        "trouble": name_commands(status.trouble or "", status.conversation_id),
        "turn": f"{status.turn}, {answers}",
        "events": f"{status.next_seq}, {status.shown} of them in view ({view_tokens})",
        "unrecorded": _describe_unrecorded(status),
        "model": status.model,
        "workspace": describe_workspace(load_settings(), *place),
        "tags": ", ".join(status.tags),
        "tokens": _describe_tokens(status.spent),
        "cost": describe_cost(status.spent),
    }
    yield from ((name, value) for name, value in lines.items() if value)
    if len(status.spent_on) > 1:
        for model, spent in status.spent_on.items():
            yield "", f"{model}: {_describe_tokens(spent)}, {describe_cost(spent)}"
    for call in status.pending:
        suffix = ", waits for you" if call.asks else ""
        action = f"{call.tool_call_id} {call.tool_name}, seq {call.seq}"
        yield "pending", f"{action}, risk {call.risk}{suffix}"


def _describe_wait(status: ConversationStatus) -> str | None:
    """Describe what has to happen before the conversation goes on; None while it is at work."""
    name = status.conversation_id
    match status.status:
        case "waiting_for_confirmation":
            calls = count(len(calls_awaiting_approval(status)), "call")
            return f"you, to allow or refuse {calls}: `perdure approve {name}`, or `reject`"
        case "waiting_for_answer":
            return f"your answer: `perdure answer {name} TEXT`"
        case "waiting" if status.detail is not None and status.detail.wait is not None:
            return _describe_awaited(status.detail.wait)
        case "finished":
            return "your answer" if status.phase == "awaiting_user" else "your next message"
        case "paused":
            return f"`perdure resume {name}`"
        case "idle" if not status.next_seq:
            return "a worker that takes it up"
        case "idle" | "error" | "stuck":
            return f"a message, or `perdure resume {name}`"
    return None


def _describe_awaited(wait: WaitDetail) -> str:
    if wait.signal is None:
        return f"the time {describe_time(wait.until or '')}"
    return describe_wait(wait.until, wait.signal).removeprefix("for ")


def _describe_question(status: ConversationStatus) -> str | None:
    wait = status.detail.wait if status.detail else None
    if wait is None or wait.question is None:
        return None
    return escape_controls(f"\n{'':<13}".join(describe_question(wait)))


def describe_status_event(event: ConversationStateUpdateEvent) -> str:
    """Describe a status as it is told: its name, and what belongs to it."""
    detail = event.status_detail or StatusDetail()
    more = (
        describe_loading(detail.loading),
        describe_retry(detail.retry) if detail.retry else "",
        detail.reason or "",
    )
    return escape_controls("  ".join([str(event.value), *filter(None, more)]))


def _find_retry(status: ConversationStatus) -> ModelRetry | None:
    return status.detail.retry if status.detail else None


def _describe_unrecorded(status: ConversationStatus) -> str | None:
    return f"{count(status.waiting, 'request')} not in the log yet" if status.waiting else None


def _describe_tokens(usage: Usage) -> str:
    cache_counts = {"from the cache": usage.cached_tokens, "to the cache": usage.cache_write_tokens}
    kinds = [f"{count:,} {kind}" for kind, count in cache_counts.items() if count]
    prompt = f"{usage.prompt_tokens:,} in" + (f" ({', '.join(kinds)})" if kinds else "")
    reasoning = f" ({usage.reasoning_tokens:,} of reasoning)" if usage.reasoning_tokens else ""
    return f"{prompt}, {usage.completion_tokens:,} out{reasoning}"


def calls_awaiting_approval(status: ConversationStatus) -> list[PendingCall]:
    """List the calls that wait for a person."""
    return [call for call in status.pending if call.asks]


def name_commands(sentence: str, conversation_id: str) -> str:
    """Write the commands of a sentence so that they can be copied: with the conversation's id."""
    return re.sub(r"`perdure (interrupt|resume)`", rf"`perdure \1 {conversation_id}`", sentence)

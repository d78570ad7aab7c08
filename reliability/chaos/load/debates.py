"""Scripted debates: two agents and a moderator hold one, and a person votes in it."""

import json
from dataclasses import dataclass
from typing import Any

from perdure.agent.discussion.spec import DiscussionSpec, parse_discussion
from perdure.agent.discussion.state import DiscussionStatus
from perdure.client.client import Client
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.ids import new_conversation_id
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure
from reliability.chaos.load.conversations import (
    ANSWER_TIMEOUT,
    HEARTBEAT_TIMEOUT,
    LoadItem,
    recorded_end,
    retry_until_answered,
)

SPEAKERS = ("ada", "bob", "moderator")

ANSWERS: dict[str, tuple[Any, ...]] = {
    "ada": (
        {"speak": True, "urgency": 7, "line": "Money."},
        "It pays.",
        {"ballot": "yes"},
        {"speak": True, "urgency": 3, "line": "More money."},
        "It pays twice.",
    ),
    "bob": (
        {"speak": True, "urgency": 2, "line": "Rest."},
        "We rest.",
        {"ballot": "no"},
        {"speak": False},
    ),
    "moderator": ("They disagree.", "They have voted."),
}
TALLY = {"yes": 2, "no": 1}
"""The result, with the ballot of the person, which is yes."""

FAILING = "debate-bob"
"""The model whose second answer comes after a failure."""

PHASES = (
    {"name": "decision", "end": "vote", "question": "Four days?"},
    {"name": "closing"},
)


@dataclass
class LoadDebate(LoadItem):
    """A debate; `result` is what its workflow returned."""

    handle: DiscussionHandle
    result: DiscussionStatus | None = None


def debate_scripts() -> dict[str, Script]:
    """Return the scripts of the speakers; one answer comes after a failure."""
    return {f"debate-{name}": _script(f"debate-{name}", ANSWERS[name]) for name in SPEAKERS}


def _script(name: str, answers: tuple[Any, ...]) -> Script:
    texts = [item if isinstance(item, str) else json.dumps(item) for item in answers]
    made = [ScriptedAnswer(content=text, delay=0.2) for text in texts]
    if name == FAILING:
        made[1] = made[1].model_copy(update={"failures": (ScriptedFailure(status=500),)})
    return Script(name=name, answers=tuple(made))


def make_debate(address: str) -> DiscussionSpec:
    def agent(name: str) -> dict[str, Any]:
        model = {"name": f"openai/debate-{name}", "api_base": address, "timeout": 30.0}
        return {"model": model, "heartbeat_timeout": HEARTBEAT_TIMEOUT}

    table = {
        "topic": "Should we work four days?",
        "agents": [{"id": name, **agent(name)} for name in SPEAKERS[:2]],
        "moderator": {"policy": "urgency", **agent("moderator")},
        "phases": PHASES,
    }
    return parse_discussion(table)


def open_debate(client: Client) -> LoadDebate:
    """Return a debate that has not begun."""
    return LoadDebate(Discussions.from_client(client).get(new_conversation_id()))


async def run_debate(client: Client, it: LoadDebate, address: str) -> None:
    """Run one debate to its end, with models at this address."""
    discussions, handle, spec = Discussions.from_client(client), it.handle, make_debate(address)
    vote = lambda: handle.vote(  # noqa: E731
        "yes", "eve", contribution_id="eve", max_wait=ANSWER_TIMEOUT
    )
    async with recorded_end(it):
        await retry_until_answered(it, lambda: discussions.start(spec, handle.id))
        await retry_until_answered(it, vote)
        it.result = await retry_until_answered(it, handle.result)
        if it.result.status != "finished":
            it.end = f"it is {it.result.status}: {it.result.reason}"

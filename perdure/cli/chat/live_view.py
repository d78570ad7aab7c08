"""What stands above the input line while a turn is at work, and the status line below it."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import TypeAlias

from prompt_toolkit.utils import get_cwidth

from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.cli.chat.slash_control import describe_policy
from perdure.cli.chat.slash_views import describe_cost
from perdure.cli.output import escape_controls, shorten_line
from perdure.cli.rendering.live_region import SPEAKERS, wrap_words
from perdure.client.running_step import RunningStep
from perdure.events.entry import Entry
from perdure.events.usage import Usage
from perdure.models.price_table import find_window

Fragments: TypeAlias = list[tuple[str, str]]

MAX_LIVE_LINES = 12
"""Newest lines shown of what the model writes and the tools print."""

OTHER_LINES = 8
"""Lines of the terminal that the live text leaves free."""

WORK = {
    "llm.chat": "The model thinks",
    "llm.condense": "The model summarizes",
    "tool.call": "A tool runs",
    "agent.prepare": "The tools start",
}

wrap_cached = lru_cache(maxsize=16)(wrap_words)


@dataclass
class LiveView:
    """The steps at work, without those whose events have been printed, and messages not yet read.

    `since` is when the turn's present step was first seen.
    """

    steps: tuple[RunningStep, ...] = ()
    finished_steps: set[tuple[str, str]] = field(default_factory=set)
    queued: dict[str, str] = field(default_factory=dict)
    """The texts of the messages that the log does not hold yet, by their ids."""
    since: float = 0.0
    _step: tuple[str, str] | None = None

    def start(self) -> None:
        self.since, self._step, self.steps = monotonic(), None, ()

    def set_steps(self, steps: tuple[RunningStep, ...]) -> None:
        self.steps = steps
        newest = self._visible()[-1:]
        step = (newest[0].run_id, newest[0].activity_id) if newest else None
        if step is not None and step != self._step:
            self._step, self.since = step, monotonic()

    def finish_step(self, entry: Entry) -> None:
        """Remove the step that an entry came of, and the message that it holds."""
        step = entry.origin.activity.partition(" ")[0]
        self.finished_steps.add((entry.origin.run, step))
        self.queued.pop(getattr(entry.event, "message_id", None) or "", None)

    def _visible(self) -> list[RunningStep]:
        return [
            step
            for step in self.steps
            if (step.run_id, step.activity_id) not in self.finished_steps
        ]

    def render(self, columns: int, rows: int, at_work: bool) -> Fragments:
        """Render the lines above the prompt, an empty one first, each with its newline."""
        lines: list[tuple[str, str]] = [("", "")]
        most = max(1, min(MAX_LIVE_LINES, rows - OTHER_LINES - len(self.queued)))
        if at_work:
            steps = self._visible()
            texts = [line for step in steps for line in _step_lines(step, columns)]
            lines += [("class:live", line) for line in texts[-most:]]
            lines.append(("class:spinner", self._spinner(steps)))
        lines += [("class:queued", _fit(f"  queued: {it}", columns)) for it in self._queue()]
        return [(style, f"{line}\n") for style, line in lines]

    def _queue(self) -> Iterator[str]:
        for text in self.queued.values():
            yield shorten_line(escape_controls(text))

    def _spinner(self, steps: list[RunningStep]) -> str:
        seconds = monotonic() - self.since
        frames = (
            "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if "utf" in (sys.__stdout__ or sys.stdout).encoding.lower() else "-\\|/"
        )
        frame = frames[int(seconds * 5) % len(frames)]
        kind = steps[-1].kind if steps else ""
        work = WORK.get(kind, "At work")
        if kind == "llm.chat" and steps[-1].text:
            work = "The model writes"
        return f"{frame} {work}, {seconds:.0f} s (^C interrupts)"


def _step_lines(step: RunningStep, columns: int) -> list[str]:
    """Render what a step has printed so far, wrapped between words."""
    if step.kind not in SPEAKERS:
        return []
    indent = " " * (7 if step.kind == "tool.call" else 2)
    width = max(20, columns - len(indent) - 1)
    lines = list(wrap_cached(step.text, width)) if step.text.strip("\n") else []
    if step.attempt > 1:
        failure = shorten_line(escape_controls(step.failure or ""))
        mark = f"(attempt {step.attempt}{': ' if failure else ''}{failure})"
        lines = [_fit(mark, width), *lines[-MAX_LIVE_LINES:]]
    return [f"{indent}{line}" for line in lines]


def render_status_line(
    agent: Agent | None, state: State, conversation_id: str, columns: int
) -> str:
    """Render the status: as many of its parts as fit, the important ones first."""
    usage = state.usage
    parts = [shorten_line(agent.model.name.rpartition("/")[2], 30)] if agent is not None else []
    parts.append(f"{usage.prompt_tokens + usage.completion_tokens:,} tokens")
    parts.append(_describe_spent(usage, agent.limits.max_budget if agent is not None else None))
    if agent is not None and (window := find_window(agent.model)):
        used = max(state.view_tokens, state.last_usage.prompt_tokens)
        parts.append(f"{max(0, 100 - 100 * used // window)}% context left")
    if agent is not None:
        parts.append(f"confirm {describe_policy(agent)}")
    parts += [conversation_id[:8], "/help"]
    while len(parts) > 1 and get_cwidth(" | ".join(parts)) > columns - 2:
        parts.pop()
    return _fit(f" {' | '.join(parts)}", columns)


def _describe_spent(usage: Usage, budget: float | None) -> str:
    """Describe the cost, and the budget where there is one."""
    if budget is None:
        return describe_cost(usage)
    cents = 2 if round(budget, 2) == budget else 4
    return f"{describe_cost(usage)} of ${budget:,.{cents}f}"


def _fit(line: str, columns: int) -> str:
    """Cut a line so that it does not wrap."""
    while get_cwidth(line) >= columns:
        line = line[:-1]
    return line

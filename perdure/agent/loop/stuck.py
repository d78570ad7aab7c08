"""Stuck detection, from the fingerprints of recent events."""

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from pydantic import model_serializer, model_validator

from perdure.agent.loop.inbox import AgentWarning, StuckFinding
from perdure.agent.policies import StuckThresholds
from perdure.events.base import Frozen
from perdure.events.summary import EventSummary

RESULT_KINDS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")

TRACED_KINDS = ("MessageEvent", "ActionEvent", *RESULT_KINDS, "PauseEvent", "InterruptEvent")
"""The kinds that stuck detection compares, or that end a monologue."""


class RecentEvent(Frozen):
    """An event as stuck detection remembers it: about 60 bytes of JSON.

    The JSON is the list of its fields, without default values at the end. Versions before wrote an
    object, which is read as well (docs/decisions/2026-11-28-implied-fields.md).
    """

    seq: int
    kind: str
    source: str
    fingerprint: str
    tool_name: str | None = None
    is_error: bool = False

    @model_validator(mode="before")
    @classmethod
    def _name_fields(cls, value: Any) -> Any:
        is_list = isinstance(value, list | tuple)
        return dict(zip(cls.model_fields, value, strict=False)) if is_list else value

    @model_serializer
    def _list_fields(self) -> list[Any]:
        fields = [self.seq, self.kind, self.source, self.fingerprint]
        if self.is_error:
            return [*fields, self.tool_name, True]
        return fields if self.tool_name is None else [*fields, self.tool_name]


Recent: TypeAlias = Sequence[RecentEvent]


def add_recent(
    recent: tuple[RecentEvent, ...], event: EventSummary, thresholds: StuckThresholds
) -> tuple[RecentEvent, ...]:
    """Add an event to the newest `thresholds.window` ones.

    A user's message starts over; a warning to the agent does not.
    """
    if event.kind == "MessageEvent" and event.source == "user":
        return ()
    if event.kind not in TRACED_KINDS:
        return recent
    trace = RecentEvent(
        seq=event.seq,
        kind=event.kind,
        source=event.source,
        fingerprint=event.fingerprint,
        tool_name=event.tool_name,
        is_error=bool(event.is_error),
    )
    traces = (*recent, trace)
    return traces[max(0, len(traces) - thresholds.window) :]


def detect_stuck(
    recent: Recent, thresholds: StuckThresholds, polling: Collection[str] = ()
) -> StuckFinding | None:
    """Find that the agent is stuck.

    Repeating a call of a `polling` tool with the same result is waiting, not being stuck; a call of
    it that could not be made at all is an error like any other.
    """
    return (
        _find_repetition(recent, thresholds.action_observation, polling)
        or _find_failures(recent, thresholds.action_error, polling)
        or _find_monologue(recent, thresholds.monologue)
        or _find_alternation(recent, thresholds, polling)
    )


def warn_of_stuck(
    recent: Recent, thresholds: StuckThresholds, polling: Collection[str] = ()
) -> AgentWarning | None:
    """Return the warning, given once, that the same action has failed `action_error` times.

    A message from the environment after the last failure is that warning.
    """
    failures = _newest_failures(recent, polling)
    if not failures or len(failures) != 2 * thresholds.action_error:
        return None
    later = (trace for trace in recent if trace.seq > failures[1].seq)
    if any(trace.kind == "MessageEvent" and trace.source == "environment" for trace in later):
        return None
    text = (
        f"`{failures[0].tool_name}` was called {thresholds.action_error} times in a row with the "
        "same arguments and failed every time; it will not work the next time either. Read the "
        "error, then change the arguments or try another way. The same failure once more ends "
        "your turn."
    )
    return AgentWarning(topic="stuck", text=text)


def _find_repetition(recent: Recent, times: int, polling: Collection[str]) -> StuckFinding | None:
    traces = _newest(recent, times, RESULT_KINDS, polling)
    if traces and _are_same(traces[:times]) and _are_same(traces[times:]):
        return _finding("action_observation", traces, times)
    return None


def _find_failures(recent: Recent, times: int, polling: Collection[str]) -> StuckFinding | None:
    failures = _newest_failures(recent, polling)
    count = len(failures) // 2
    return _finding("action_error", failures, count) if 0 < times < count else None


def _find_monologue(recent: Recent, times: int) -> StuckFinding | None:
    newest = takewhile(lambda trace: trace.kind == "MessageEvent", reversed(recent))
    messages = [trace for trace in newest if trace.source == "agent"]
    return _finding("monologue", messages, len(messages)) if 0 < times <= len(messages) else None


def _find_alternation(
    recent: Recent, thresholds: StuckThresholds, polling: Collection[str]
) -> StuckFinding | None:
    """Find two pairs in alternation; a person's rejections between them do not count."""
    # Two pairs alternate only once the first one has come back.
    times = max(thresholds.alternating, 3) if thresholds.alternating > 0 else 0
    traces = _newest(recent, times, RESULT_KINDS[:2], polling)
    rows = (traces[:times], traces[times:])
    if all(map(_are_same, rows)) and not 0 < thresholds.action_observation <= times:
        return None  # a single pair, repeated within its own threshold
    if traces and all(_are_same(row[start::2]) for row in rows for start in (0, 1)):
        return _finding("alternating", traces, times)
    return None


def _newest(
    recent: Recent, times: int, result_kinds: Collection[str], polling: Collection[str]
) -> list[RecentEvent]:
    """Return the newest actions, then the newest results, `times` of each.

    They are collected separately: the results of parallel calls follow all of the calls. Empty if
    there are too few, or a `polling` tool among them.
    """
    actions = [trace for trace in reversed(recent) if trace.kind == "ActionEvent"][:times]
    results = [trace for trace in reversed(recent) if trace.kind in result_kinds][:times]
    traces = [*actions, *results]
    waits = any(trace.tool_name in polling for trace in traces)
    return traces if len(actions) == len(results) == times and not waits else []


def _newest_failures(recent: Recent, polling: Collection[str]) -> list[RecentEvent]:
    """Return the newest run of failures of one action: each action, then its failure."""

    def fails_again(pair: tuple[RecentEvent, RecentEvent]) -> bool:
        action, result = pair
        fails = result.is_error and result.tool_name not in polling
        same = action.fingerprint == actions[0].fingerprint
        return same and (result.kind == "AgentErrorEvent" or fails)

    actions = [trace for trace in reversed(recent) if trace.kind == "ActionEvent"]
    results = [trace for trace in reversed(recent) if trace.kind in RESULT_KINDS]
    run = takewhile(fails_again, zip(actions, results, strict=False))
    return [trace for pair in run for trace in pair]


def _are_same(traces: Recent) -> bool:
    """Check for equal fingerprints; a person's rejections are never the same."""
    fingerprints = {trace.fingerprint for trace in traces}
    return len(fingerprints) == 1 and all(trace.source != "user" for trace in traces)


def _finding(pattern: str, traces: Recent, count: int) -> StuckFinding:
    seqs = [trace.seq for trace in traces]
    return StuckFinding(pattern=pattern, first_seq=min(seqs), last_seq=max(seqs), count=count)

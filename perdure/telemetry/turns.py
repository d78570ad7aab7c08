"""The turn that a step belongs to, as the workflow tells it to the activity in a header.

A header is no command: a history replays with and without it, whatever a worker adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.converter import DefaultPayloadConverter
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.state import UNFINISHED_STATUSES, WAITING_STATUSES, State
from perdure.events.base import Tolerant

TURN_HEADER = "perdure-turn"
TRACK_HEADER = "perdure-turns"

RECORD, OPEN = "log.append", "log.open"

AHeader = TypeVar("AHeader", bound=Tolerant)

_CONVERTER = DefaultPayloadConverter()


class EndedTurn(Tolerant):
    """A turn that is over, or was overtaken by the next one; its events are in these slots."""

    turn: int
    first_seq: int
    last_seq: int
    status: str
    error: str | None = None
    """The code of what it ended with, such as `auth`; None where it ended well."""
    agent: str | None = None
    model: str = ""


class TurnPosition(Tolerant):
    """The turn of a step, and the one that was over before it; None where it is not known yet."""

    turn: int | None = None
    ended: EndedTurn | None = None


class TurnTrack(Tolerant):
    """The turns of a workflow: the newest, its first slot, and the last one that was told."""

    turn: int = 0
    first_seq: int = 0
    told: int = 0


def read_position(headers: Mapping[str, Payload]) -> TurnPosition | None:
    """Read the header of a step; None without one, as of a worker without telemetry."""
    return _read(headers, TURN_HEADER, TurnPosition)


def find_position(
    track: TurnTrack, state: State, activity: str, step: Any
) -> tuple[TurnTrack, TurnPosition]:
    """Find the turn of a step that a workflow begins in a state; return the next track as well."""
    ended = None
    over = state.status not in UNFINISHED_STATUSES
    if state.turn > track.turn:
        if track.turn > track.told:  # a message came while a person was waited for
            ended = _end(track, state, state.last_user_seq - 1, "running")
        # A run that finds a turn over was not there when it ended.
        told = state.turn if over and track.turn == 0 else max(track.told, state.turn - 1)
        track = TurnTrack(turn=state.turn, first_seq=state.last_user_seq, told=told)
    if over and track.turn > track.told:
        ended = _end(track, state, state.next_seq - 1, state.status)
        track = track.model_copy(update={"told": track.turn})
    return track, TurnPosition(turn=_turn_of(state, activity, step), ended=ended)


def _turn_of(state: State, activity: str, step: Any) -> int | None:
    if activity == OPEN:
        return None
    items: Sequence[Any] = getattr(step, "items", ()) if activity == RECORD else ()
    goes_on = state.status in ("running", *WAITING_STATUSES)
    begins = not goes_on and any(isinstance(item, UserMessage) for item in items)
    return state.turn + 1 if begins else state.turn


def _end(track: TurnTrack, state: State, last_seq: int, status: str) -> EndedTurn:
    spec, reason = state.spec, state.reason or ""
    failed = status in ("error", "stuck")
    return EndedTurn(
        turn=track.turn,
        first_seq=track.first_seq,
        last_seq=last_seq,
        status=status,
        error=(reason.partition(":")[0] or status) if failed else None,
        agent=spec.agent if spec else None,
        model=spec.model.name if spec else "",
    )


class TurnMarker(Interceptor):
    """Tells the activities of conversations which turn they belong to."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: ARG002
    ) -> type[WorkflowInboundInterceptor]:
        return _TurnInbound


class _TurnInbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._outbound = _TurnOutbound(outbound)
        super().init(self._outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        self._outbound.track = _read(input.headers, TRACK_HEADER, TurnTrack) or TurnTrack()
        return await super().execute_workflow(input)


class _TurnOutbound(WorkflowOutboundInterceptor):
    def __init__(self, following: WorkflowOutboundInterceptor) -> None:
        super().__init__(following)
        self.track = TurnTrack()

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        input.headers = self._mark(input)
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        input.headers = self._mark(input)
        return super().start_local_activity(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        input.headers = {**input.headers, TRACK_HEADER: _write(self.track)}
        super().continue_as_new(input)

    def _mark(self, input: StartActivityInput | StartLocalActivityInput) -> Mapping[str, Payload]:
        state = getattr(getattr(workflow.instance(), "loop", None), "state", None)
        if not isinstance(state, State):
            return input.headers
        step = getattr(input.args[0], "step", None) if input.args else None
        self.track, position = find_position(self.track, state, input.activity, step)
        return {**input.headers, TURN_HEADER: _write(position)}


def _write(value: Tolerant) -> Payload:
    return _CONVERTER.to_payload(value.model_dump(exclude_none=True))


def _read(headers: Mapping[str, Payload], name: str, kind: type[AHeader]) -> AHeader | None:
    """Read a header; one that cannot be read is none, as no step may fail of it."""
    if (header := headers.get(name)) is None:
        return None
    try:
        return kind.model_validate(_CONVERTER.from_payload(header))
    except (LookupError, RuntimeError, ValueError, RecursionError):
        return None

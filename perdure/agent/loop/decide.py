"""The decision what to do next, in one place."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import Any

from perdure.agent.loop.inbox import (
    Answer,
    Approval,
    CloseRequest,
    ConfirmationRequest,
    InboxItem,
    InterruptRequest,
    Rejection,
    TurnFailure,
    UserMessage,
    WaitEnd,
    json_size,
)
from perdure.agent.loop.limits import find_reached_limit, warn_of_limit
from perdure.agent.loop.state import (
    DELEGATE_TOOL,
    WAITING_STATUSES,
    PendingAction,
    RunNotes,
    State,
    actions_to_confirm,
    find_lost_call,
    find_unsure_ids,
)
from perdure.agent.loop.steps import (
    Act,
    CloneRepository,
    Condense,
    Delegate,
    GenerateTitle,
    Prepare,
    Record,
    Refusal,
    ResolveLostCall,
    Step,
    Think,
)
from perdure.agent.loop.stuck import detect_stuck, warn_of_stuck
from perdure.agent.loop.wait_steps import end_wait_if_due, start_or_skip_wait, with_wait_ends
from perdure.agent.spec import Agent
from perdure.agent.view.condense.thresholds import CondenseReason, exceeds_threshold

MAX_RECORD_BYTES = 96 * 1024
"""Bytes of waiting items that one step records; at least one item is always recorded."""

MAX_RECORD_ITEMS = 100
"""Items that one step records: their summaries come back in one payload of 128 KiB at most."""

NO_NOTES = RunNotes()

STOPPED_REASON = "The user stopped the agent before this was done."
SUSPENDED_REASON = (
    "The agent was suspended before this was done, as its user had too many conversations at work."
)


def decide(
    state: State,
    inbox: Sequence[InboxItem],
    seconds_left: float | None = None,
    notes: RunNotes = NO_NOTES,
    at: str | None = None,
) -> tuple[Step, ...]:
    """Return the next steps, to run side by side; none until somebody asks for something.

    `seconds_left` is the time to the deadline, where there is one, and `at` the time in UTC, by
    which waits end.
    """
    # First: no event says that a call was lost, and a pause must not discard that.
    if lost := find_lost_call(state, notes):
        return (ResolveLostCall(action_seq=lost[0], detail=lost[1]),)
    if inbox:
        return (_record_inbox(state, inbox),)
    if state.status == "closed" or state.spec is None:
        return ()
    if state.status == "idle" and state.pending:  # the response and the interrupt crossed
        seqs = tuple(action.seq for action in state.pending)
        return (Record(items=(), refusal=Refusal(action_seqs=seqs, reason=STOPPED_REASON)),)
    if state.condense_reason == "user" and not (state.pending and state.status == "running"):
        return (_condense(state, "user"),)
    if state.status in WAITING_STATUSES and (end := _end_wait(state, seconds_left, at)):
        return (Record(items=(end,)),)
    if state.status != "running":
        return () if notes.title_failed else _generate_title(state, state.spec)
    if state.pending and not is_over(seconds_left):
        return _run_pending(state, state.spec)
    return (_continue_turn(state, state.spec, seconds_left, notes.condense_above),)


def _end_wait(
    state: State, seconds_left: float | None, at: str | None
) -> TurnFailure | WaitEnd | None:
    """Return what ends a wait: its time, its signal, or the deadline of the conversation."""
    if is_over(seconds_left):
        return find_reached_limit(state, seconds_left)
    return end_wait_if_due(state, at)


def is_over(seconds_left: float | None) -> bool:
    """Tell whether the time to a deadline is over."""
    return seconds_left is not None and seconds_left <= 0


def select_items(inbox: Sequence[InboxItem]) -> tuple[InboxItem, ...]:
    """Select the first items of the inbox that one step can record, at least one."""
    sizes = accumulate(map(json_size, inbox[:MAX_RECORD_ITEMS]))
    return tuple(inbox[: max(1, bisect_right(list(sizes), MAX_RECORD_BYTES))])


def select_opening_items(inbox: Sequence[InboxItem], spec: Agent | None) -> tuple[InboxItem, ...]:
    """Select the messages to record with the opening: none if a long prompt leaves no room."""
    items = select_items([item for item in inbox if isinstance(item, UserMessage)])
    if items != tuple(inbox[: len(items)]):
        return ()
    size = sum(map(json_size, items)) + (json_size(spec) if spec else 0)
    return items if size < MAX_RECORD_BYTES else ()


def _record_inbox(state: State, inbox: Sequence[InboxItem]) -> Record:
    waiting = select_items(inbox)
    items = tuple(with_wait_ends(state, [*_drop_repeated_rejections(state, waiting)]))
    return Record(
        items=items,
        from_inbox=len(waiting),
        refusal=refuse_pending(state, items),
        spec_seq=state.spec_seq,
        shown_skills=None if state.first_user_seq is None else state.shown_skills,
        unsure_ids=find_unsure_ids(state, items),
        ids_before=state.forgotten_ids.through_seq + 1 if state.forgotten_ids else 0,
        prompt_seq=state.prompt_seq if state.spec and state.spec.state == "shown" else None,
    )


def _drop_repeated_rejections(state: State, items: Sequence[InboxItem]) -> Iterator[InboxItem]:
    unanswered = {action.seq for action in state.pending}
    for item in items:
        if isinstance(item, Rejection):
            actions = tuple(seq for seq in item.actions if seq in unanswered)
            unanswered -= set(actions)
            item = item.model_copy(update={"actions": actions})
        yield item


def refuse_pending(state: State, items: Sequence[InboxItem]) -> Refusal | None:
    """Refuse the pending actions that the items rule out.

    An interrupt or a close refuses all of them, a new message those that wait for confirmation.
    """
    stops = [item for item in items if isinstance(item, InterruptRequest | CloseRequest)]
    messages = [item for item in items if isinstance(item, UserMessage)]
    if stops:
        limits = [isinstance(item, InterruptRequest) and item.reason for item in stops]
        refused, reason = state.pending, SUSPENDED_REASON if all(limits) else STOPPED_REASON
        answers = {item.action for item in items if isinstance(item, Answer)}
        answered = _action_seqs(items, Rejection) | answers
    elif messages:
        refused, reason = actions_to_confirm(state), "Superseded by a new message of the user."
        before = tuple(takewhile(lambda item: not isinstance(item, UserMessage), items))
        answered = _action_seqs(before, Approval) | _action_seqs(items, Rejection)
    else:
        return None
    seqs = (action.seq for action in refused if action.outcome_unknown is None)
    remaining = tuple(seq for seq in seqs if seq not in answered)
    if not remaining:
        return None
    actor, run = (stops or messages)[0].actor, any(item.run for item in messages) or bool(stops)
    return Refusal(action_seqs=remaining, reason=reason, actor=actor, run=run)


def _action_seqs(items: Sequence[InboxItem], kind: type[Approval] | type[Rejection]) -> set[int]:
    return {seq for item in items if isinstance(item, kind) for seq in item.actions}


def _condense(state: State, reason: CondenseReason) -> Condense:
    return Condense(
        spec_seq=state.spec_seq,
        forgotten_seqs=state.forgotten_seqs,
        reason=reason,
        overflows=state.overflows,
    )


def _generate_title(state: State, spec: Agent) -> tuple[Step, ...]:
    if spec.title_model is None or state.title is not None or state.first_user_seq is None:
        return ()
    return (GenerateTitle(spec_seq=state.spec_seq, message_seq=state.first_user_seq),)


def _run_pending(state: State, spec: Agent) -> tuple[Step, ...]:
    """Return the actions that can run now, or the request for a person's confirmation."""
    if waiting := actions_to_confirm(state):
        request = ConfirmationRequest(actions=tuple(action.seq for action in waiting))
        return (Record(items=(request,)),)
    if wait := start_or_skip_wait(state):
        return (Record(items=(wait,)),)
    parallel = tuple(_select_parallel(state, spec.parallel))
    delegations = sum(action.tool_name == DELEGATE_TOOL for action in parallel)
    return tuple(_act(state, spec, action, delegations) for action in parallel)


def _select_parallel(state: State, limit: int) -> Iterator[PendingAction]:
    """Yield the first actions of the response that do not conflict with each other."""
    first = state.pending[0]
    batch = takewhile(lambda action: action.response_id == first.response_id, state.pending)
    selected: list[PendingAction] = []
    for action in islice(batch, max(1, limit)):
        is_wait = action.tool_name in state.tool_traits.suspending
        if is_wait or any(_conflicts(state, action, other) for other in selected):
            return
        selected.append(action)
        yield action


def _conflicts(state: State, action: PendingAction, other: PendingAction) -> bool:
    readers = state.tool_traits.read_only
    if action.tool_name in readers and other.tool_name in readers:
        return False
    if action.resources is None or other.resources is None:
        return True
    return not set(action.resources).isdisjoint(other.resources)


def _act(state: State, spec: Agent, action: PendingAction, delegations: int) -> Act | Delegate:
    """Build the step for an action; parallel delegations share the remaining budget equally."""
    place: dict[str, Any] = {
        "action_seq": action.seq,
        "spec_seq": state.spec_seq,
        "files_seq": state.files_seq,
    }
    if action.tool_name == DELEGATE_TOOL:
        budget = spec.limits.max_budget
        share = None if budget is None else max(0.0, budget - state.usage.cost) / delegations
        return Delegate(**place, budget=share)
    assert state.prompt_seq is not None, "actions come after the prompt"
    return Act(
        **place,
        prompt_seq=state.prompt_seq,
        repeatable=action.repeatable,
        shown_skills=state.shown_skills or None,
    )


def _continue_turn(
    state: State, spec: Agent, seconds_left: float | None, condense_above: int
) -> Step:
    """Return the next step of the agent's turn: clone, stop, warn, condense or ask the model."""
    if spec.repository not in (None, state.repository) and not is_over(seconds_left):
        return CloneRepository(
            spec_seq=state.spec_seq, files_seq=state.files_seq, shown_skills=state.shown_skills
        )
    if state.prompt_seq is None:
        return Prepare(spec_seq=state.spec_seq)
    traces = (state.recent_events, spec.stuck, state.tool_traits.polling)
    end = detect_stuck(*traces) or find_reached_limit(state, seconds_left)
    if item := end or warn_of_stuck(*traces):
        return Record(items=(item,))
    if state.condense_reason == "overflow":
        return _condense(state, "overflow")
    if warning := warn_of_limit(state, seconds_left):
        return Record(items=(warning,))
    if state.view_events >= condense_above and exceeds_threshold(
        spec.condenser, state.view_events, state.view_tokens
    ):
        return _condense(state, "size")
    return Think(
        spec_seq=state.spec_seq,
        prompt_seq=state.prompt_seq,
        forgotten_seqs=state.forgotten_seqs or None,
        response_index=state.response_count,
    )

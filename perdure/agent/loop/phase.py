"""The phase of a conversation, which clients are told, as far as its log has it."""

from perdure.agent.loop.limits import LIMITS
from perdure.agent.loop.state import State
from perdure.agent.response_schema import FINISH_TOOL
from perdure.agent.surroundings import name_directory
from perdure.events.status import InternalError, Loading, Phase, ReachedLimit, StatusDetail

SUSPENDED_LIMIT = "max_concurrent_conversations"
"""The name of the limit at which a conversation is suspended."""

SUSPENDED_REASON = (
    "suspended, as too many conversations of the user were at work: a message makes it go on"
)

INTERNAL_ERROR = "internal"
"""The code of a failure whose fault is ours; its detail begins with the kind and the id."""

FAULT_MARK = "fault"
"""The first detail of the failure of a step whose fault is ours; the second one is its id."""

FAULT_SEPARATOR = " · "
"""Stands between the kind and the id of a failure of ours."""


def find_phase(state: State) -> Phase:
    """Return the status that clients are told.

    An agent without a prompt, or without its repository, is still prepared.
    A turn that ended with words is `awaiting_user`, unless the agent has no tool to finish with.
    """
    match state.status:
        case "finished" if state.ending == "reject":
            return "rejected"
        case "finished":
            can_finish = state.spec is not None and FINISH_TOOL in state.spec.tools
            return "awaiting_user" if can_finish and state.ending is None else "finished"
        case "running" if state.prompt_seq is None or _find_clone(state) is not None:
            return "loading"
        case "error" | "idle" if find_limit(state) is not None:
            return "limited"
        case status:
            return status


def describe_phase(state: State) -> StatusDetail | None:
    """Return what clients are told beside the status; None if there is nothing."""
    detail = StatusDetail(
        reason=state.reason,
        loading=list_loading(state) if find_phase(state) == "loading" else (),
        limit=find_limit(state),
        fault=find_fault(state.status, state.reason),
        wait=state.wait.detail() if state.wait is not None else None,
    )
    return detail if detail != StatusDetail() else None


def list_loading(state: State) -> tuple[Loading, ...]:
    """List what an agent waits for: a clone, then its servers, which may not have answered yet."""
    if (name := _find_clone(state)) is not None:
        return (Loading(what="clone", name=name),)
    servers = state.spec.mcp if state.spec is not None else ()
    return tuple(Loading(what="mcp_server", name=server.name) for server in servers)


def _find_clone(state: State) -> str | None:
    """Return the name of the directory into which a repository is still to be cloned, if any."""
    repository = state.spec.repository if state.spec is not None else None
    if state.pending or repository in (None, state.repository):
        return None
    return name_directory(repository or "")


def find_limit(state: State) -> ReachedLimit | None:
    """Return the limit that ended the turn, or that suspended the conversation, if any."""
    code, _, sentence = (state.reason or "").partition(": ")
    if state.status == "error" and code in LIMITS:
        return ReachedLimit(name=code, how_to_go_on=sentence)
    if state.status == "idle" and state.reason == SUSPENDED_REASON:
        return ReachedLimit(name=SUSPENDED_LIMIT, how_to_go_on="A message makes it go on.")
    return None


def describe_fault(kind: str, fault_id: str) -> str:
    """Describe a failure of ours without its text, which may hold what is not for a client."""
    return (
        f"{kind}{FAULT_SEPARATOR}{fault_id}: this is a fault of perdure or of its worker, whose "
        "log has the error under this id. A message or resume tries again."
    )


def find_fault(status: str, reason: str | None) -> InternalError | None:
    """Return the failure of ours behind a status `error`, if it is one with an id."""
    code, _, rest = (reason or "").partition(": ")
    kind, separator, more = rest.partition(FAULT_SEPARATOR)
    if status != "error" or code != INTERNAL_ERROR or not separator:
        return None
    return InternalError(kind=kind, id=more.partition(":")[0])

"""The status of a conversation for clients: the value and the detail of its event."""

from typing import Literal, TypeAlias

from perdure.events.base import Tolerant

Phase: TypeAlias = Literal[
    "idle",
    "loading",
    "running",
    "awaiting_user",
    "finished",
    "rejected",
    "paused",
    "waiting_for_confirmation",
    "waiting_for_answer",
    "waiting",
    "limited",
    "stuck",
    "error",
    "closed",
]
"""The values of a status event.

`awaiting_user` says that the agent has spoken without finishing, `finished` that it called
`finish`, `rejected` that it refused the task. `loading` is a step that prepares the agent.
`waiting` is for a time or a signal, `waiting_for_answer` for an answer to the agent's question.
"""


class Loading(Tolerant):
    """Something that is prepared before the agent goes on; `name` is the server's or the clone's.

    `restore` reads the log of a conversation that goes on, or the files of its workspace.
    """

    what: Literal["restore", "clone", "mcp_server"]
    name: str | None = None


class ModelRetry(Tolerant):
    """A model that failed and is asked again."""

    model: str | None = None
    """The name of the model that failed; None from a worker of before, or one that was lost."""
    kind: str
    """The kind of the failure, such as `rate_limit`."""
    attempt: int
    """The number of the attempt that follows: 2 after the first failure."""
    next_at: str | None = None
    """The time of that attempt in UTC; None while it is at work."""


class ReachedLimit(Tolerant):
    """A limit that ended the turn: its name, and how to go on."""

    name: str
    how_to_go_on: str


class InternalError(Tolerant):
    """A failure whose fault is ours: its kind, and the id of the lines in the worker's log."""

    kind: str
    id: str


class WaitDetail(Tolerant):
    """The end that an agent waits for, by its call: a time (UTC), a signal, or an answer."""

    call: str
    seq: int
    """The slot of the event that says so."""
    until: str | None = None
    signal: str | None = None
    question: str | None = None
    choices: tuple[str, ...] = ()


class StatusDetail(Tolerant):
    """The detail of a status event beside its value; each status has only what concerns it."""

    reason: str | None = None
    """A sentence for a person: why the status is what it is."""
    loading: tuple[Loading, ...] = ()
    retry: ModelRetry | None = None
    limit: ReachedLimit | None = None
    fault: InternalError | None = None
    wait: WaitDetail | None = None


def describe_loading(loading: tuple[Loading, ...]) -> str:
    """Describe what is being prepared, in a sentence without its full stop; "" for nothing."""
    names = [each.name or "?" for each in loading if each.what == "mcp_server"]
    servers = "server" if len(names) == 1 else "servers"
    verb = "is" if len(names) == 1 else "are"
    starting = [f"The MCP {servers} {', '.join(names)} {verb} starting"] if names else []
    others = [_describe_other(each) for each in loading if each.what != "mcp_server"]
    return "; ".join([*others, *starting])


def describe_retry(retry: ModelRetry) -> str:
    """Describe a model that is asked again, in a sentence without its full stop."""
    when = f"at {retry.next_at[11:19]} UTC" if retry.next_at else "now"
    return f"{retry.model or 'the model'} failed ({retry.kind}): attempt {retry.attempt} {when}"


def describe_wait(until: str | None, signal: str | None) -> str:
    """Describe what is waited for: `for the signal 'paid', until 2026-03-01 09:25 UTC`."""
    parts = [f"for the signal {signal!r}"] if signal is not None else []
    parts += [f"until {describe_time(until)}"] if until is not None else []
    return ", ".join(parts)


def describe_time(at: str) -> str:
    """Describe the time of a timestamp, to the second: `2026-03-01 09:25:07 UTC`."""
    return f"{at[:10]} {at[11:19]} UTC"


def _describe_other(loading: Loading) -> str:
    verb = {"restore": "restored", "clone": "cloned"}.get(loading.what, "prepared")
    return f"The {loading.name or 'conversation'} is being {verb}"

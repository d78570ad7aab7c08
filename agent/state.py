"""A conversation as its workflow knows it: small, and a pure fold of the log."""

from typing import Literal

from pydantic import Field

from agent.inbox import Item, Said
from agent.ranges import Ranges
from agent.spec import Spec
from agent.status import Status
from agent.stuck import Trace
from events.base import Frozen
from events.risk import Risk
from events.usage import Usage

HARMLESS = ("think", "finish")
"""Tools that nobody has to confirm: they do nothing to the world."""

DELEGATE = "delegate"
"""The tool whose calls are conversations of their own."""


class Pending(Frozen):
    """An action that has no answer yet; `lost` says what is known of a call that was lost.

    `batch` is the answer of the model that asked for it. Once a person has been `asked` about it,
    nothing but their answer lets it happen, which is then `allowed`.
    """

    seq: int
    action_id: str
    tool_name: str
    tool_call_id: str
    batch: str
    repeatable: bool
    headline: str | None = None
    touches: tuple[str, ...] | None = None
    risk: Risk = "UNKNOWN"
    asked: bool = False
    allowed: bool = False
    lost: str | None = None


class Traits(Frozen):
    """What the tools of the agent are like, by their names."""

    repeatable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()


class State(Frozen):
    """What has happened, as far as anything is decided by it.

    `sha` is a running hash over the stored bytes of every event. `owes` says whether the agent
    owes somebody an answer, `first` and `heard` are the slots of the first and the newest message
    of a person, `finish` that of a call of `finish` in a batch that is still being worked off.
    `iterations` counts the model's answers in this turn, `answers` all of them, `last` is the bill
    of the newest; `spent_on` splits `spent` by model and purpose.

    `files` is the slot that tells of the newest snapshot of the workspace, `home` the queue of the
    workers that have it on disk.

    `shown` events of about `tokens` tokens make up the prompt; `forgotten` slots do not.
    `overflows` counts the prompts that were too long since the model last answered; below
    `hopeless` events nothing is left to be condensed. `recent` is what stuck detection looks at,
    `told` about what the system has warned the agent already.
    """

    next_seq: int = 0
    sha: str = ""
    status: Status = "idle"
    reason: str | None = None
    run_id: str | None = None
    spec: Spec | None = None
    spec_seq: int = 0
    prompt_seq: int | None = None
    tools: Traits = Traits()
    pending: tuple[Pending, ...] = ()
    owes: bool = False
    first: int | None = None
    heard: int = -1
    finish: int | None = None
    turn: int = 0
    iterations: int = 0
    answers: int = 0
    spent: Usage = Usage()
    spent_on: dict[str, Usage] = Field(default_factory=dict)
    last: Usage = Usage()
    shown: int = 0
    tokens: int = 0
    forgotten: Ranges = ()
    hopeless: int = 0
    overflows: int = 0
    condense: Literal["overflow", "user"] | None = None
    recent: tuple[Trace, ...] = ()
    told: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    files: int | None = None
    home: str | None = None
    title: str | None = None
    seen: dict[str, int] = Field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether nothing happens until somebody asks for it."""
        return self.status != "running"


def knows(state: State, item: Item) -> bool:
    """Whether this is a message that the log holds, by its sender's own id for it."""
    return isinstance(item, Said) and item.message_id in state.seen


def asking(state: State) -> tuple[Pending, ...]:
    """The actions that must not happen until a person has said so."""
    return tuple(one for one in state.pending if _asks(state, one))


def _asks(state: State, pending: Pending) -> bool:
    if pending.allowed or pending.lost is not None or pending.tool_name in HARMLESS:
        return False
    policy = state.spec is not None and state.spec.confirmation.asks(pending.risk)
    return pending.asked or policy


def lost(state: State, action: int, known: str) -> State:
    """The state once the call of the action in slot `action` has been lost."""
    pending = tuple(
        one.model_copy(update={"lost": known}) if one.seq == action else one
        for one in state.pending
    )
    return state.model_copy(update={"pending": pending})


def uncondensed(state: State) -> State:
    """The state once condensing came to nothing: it is tried again when the view has grown."""
    return state.model_copy(update={"hopeless": state.shown + max(10, state.shown // 10)})


def untitled(state: State) -> State:
    """The state once no title could be found: nobody asks for one again."""
    return state.model_copy(update={"title": state.title or ""})

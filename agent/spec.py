"""What one agent is: its model, its tools and its limits. Travels with the conversation."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from events.base import Timestamp, Tolerant
from events.risk import Risk

DEFAULT_PROMPT = """\
You are a careful agent that works in a directory of its own with the tools it is given.
Look before you change anything, check what you did, and say plainly what you could not do.
Call `finish` with a short report when the task is done.
"""


class ModelSpec(Tolerant):
    """Which model answers. `name` is litellm's, or `scripted:FILE`; keys stay with the worker.

    `timeout` is in seconds, for one answer. Where a capability is None, litellm's list of models
    tells; `max_input_tokens` is the context window.
    """

    name: str
    api_base: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    max_input_tokens: int | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    native_tool_calling: bool | None = None
    """Whether the provider takes tools; False offers them through the prompt."""
    vision: bool | None = None
    """Whether images are sent; False leaves a note in their place."""
    prompt_caching: bool | None = None
    """Whether the prompt carries marks for the provider's cache."""
    timeout: float = 600.0


class Limits(Tolerant):
    """Where a turn or a conversation ends: a status with a reason, never a crash.

    `max_iterations` counts the model's answers in one turn; all else is of the whole conversation:
    `max_budget` in US dollars, `max_tokens` in tokens both ways, `max_events` in events of the
    log, `deadline` as a moment in UTC.
    """

    max_iterations: int = 500
    max_budget: float | None = None
    max_tokens: int | None = None
    max_events: int | None = None
    deadline: Timestamp | None = None


class Confirmation(Tolerant):
    """Which actions wait for a person: none, all, or those of at least `threshold` risk.

    `confirm_unknown` says whether an action whose risk nobody could tell waits too.
    """

    policy: Literal["never", "always", "risky"] = "never"
    threshold: Literal["LOW", "MEDIUM", "HIGH"] = "HIGH"
    confirm_unknown: bool = True

    def asks(self, risk: Risk) -> bool:
        """Whether an action of this risk waits for a person."""
        if self.policy != "risky":
            return self.policy == "always"
        if risk == "UNKNOWN":
            return self.confirm_unknown
        return RISKS.index(risk) >= RISKS.index(self.threshold)


RISKS: tuple[Risk, ...] = ("UNKNOWN", "LOW", "MEDIUM", "HIGH")
"""From the lowest to the highest; an unknown risk is lower than any that was told."""


class StuckThresholds(Tolerant):
    """How often is too often; 0 switches a pattern off.

    `action_error` is how often the same action may fail before the agent is told; it is stuck at
    the next. `window` is how many of the newest events are looked at.
    """

    action_observation: int = 4
    action_error: int = 3
    monologue: int = 3
    alternating: int = 6
    window: int = 20


class NoCondenser(Tolerant):
    """The model is shown everything, until it does not fit any more."""

    kind: Literal["none"] = "none"


class RecentCondenser(Tolerant):
    """The first `keep_first` events of the view and the newest, `max_events` in all."""

    kind: Literal["recent"] = "recent"
    keep_first: int = 2
    max_events: int = 100


class AmortizedCondenser(Tolerant):
    """Beyond `max_size` events all but the first `keep_first` and the newest are forgotten.

    No summary is made; half of `max_size` is left.
    """

    kind: Literal["amortized"] = "amortized"
    max_size: int = 240
    keep_first: int = 2


class MaskingCondenser(Tolerant):
    """Observations before the newest `attention_window` events are shown as a short note.

    So are those of over `max_chars` characters, at any age, where that is set.
    """

    kind: Literal["observation_masking"] = "observation_masking"
    attention_window: int = 100
    max_chars: int | None = None


class BrowserMaskingCondenser(Tolerant):
    """Of the browser's observations only the newest `attention_window` are shown."""

    kind: Literal["browser_masking"] = "browser_masking"
    attention_window: int = 1
    tools: tuple[str, ...] = ("browser*",)
    """Patterns of tool names, as in a shell."""


class SummaryCondenser(Tolerant):
    """A model summarises what is forgotten beyond `max_size` events or `max_tokens` tokens.

    `keep_first` events stay; at least `minimum_progress` of the view is forgotten, or nothing.
    `model` None means the agent's own.
    """

    kind: Literal["llm_summary"] = "llm_summary"
    max_size: int = 240
    max_tokens: int | None = None
    keep_first: int = 2
    minimum_progress: float = 0.1
    model: ModelSpec | None = None


SingleCondenser: TypeAlias = Annotated[
    NoCondenser
    | RecentCondenser
    | AmortizedCondenser
    | MaskingCondenser
    | BrowserMaskingCondenser
    | SummaryCondenser,
    Field(discriminator="kind"),
]


class PipelineCondenser(Tolerant):
    """One after the other, until one of them condenses."""

    kind: Literal["pipeline"] = "pipeline"
    condensers: tuple[SingleCondenser, ...]


CondenserSpec: TypeAlias = Annotated[
    NoCondenser
    | RecentCondenser
    | AmortizedCondenser
    | MaskingCondenser
    | BrowserMaskingCondenser
    | SummaryCondenser
    | PipelineCondenser,
    Field(discriminator="kind"),
]


class McpServer(Tolerant):
    """A server of the Model Context Protocol: a `command` to start, or a `url` to ask.

    `env` and `headers` map a name to the environment variable of the worker that holds its value:
    no secret is in a spec. An untrusted server's hints can only make its treatment stricter.
    Times are in seconds.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    trusted: bool = False
    include: tuple[str, ...] = ()
    """Tools to offer, by name; none named means all."""
    start_timeout: float = 60.0
    call_timeout: float = 600.0


class Skills(Tolerant):
    """Where skills come from: folders of markdown files, and the workspace's own.

    `instructions` are the files of the workspace that tell an agent about it.
    """

    folders: tuple[str, ...] = ()
    workspace: bool = True
    """Whether the skills that the workspace itself brings along are read."""
    instructions: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules")


class Spec(Tolerant):
    """`tools` are names of built-in tools or `module:attribute`; times are in seconds."""

    model: ModelSpec
    agent: str | None = None
    """What the agent is called; operators find its conversations by it."""
    fallbacks: tuple[ModelSpec, ...] = ()
    """Asked in this order when the model cannot answer."""
    title_model: ModelSpec | None = None
    """Gives the conversation a title; none means its first words."""
    system_prompt: str | None = None
    """None means `DEFAULT_PROMPT`."""
    tools: tuple[str, ...] = ("terminal", "file_editor", "think", "finish")
    mcp: tuple[McpServer, ...] = ()
    skills: Skills = Skills()
    limits: Limits = Limits()
    condenser: CondenserSpec = SummaryCondenser()
    stuck: StuckThresholds = StuckThresholds()
    confirmation: Confirmation = Confirmation()
    analyzers: tuple[str, ...] = ("model", "rules")
    """Who tells an action's risk, where a policy asks: the highest counts. `module:attribute`
    names one of your own."""
    parallel: int = 8
    """Tools of one answer that run side by side, at most."""
    tags: tuple[str, ...] = ()
    workspace: str | None = None
    """A directory on the worker's machine; none means one of the conversation's own."""
    tool_timeout: float = 3600.0
    heartbeat_timeout: float = 5.0
    """How long a worker may be silent before its step is given to another."""
    idle_timeout: float = 3600.0
    """How long a conversation with nothing to do keeps its workflow; its log outlives it."""

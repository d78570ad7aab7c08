"""What one agent is: its model, its tools and its limits. Travels with the conversation."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, NaiveDatetime, TypeAdapter, model_validator

from events.base import Timestamp, Tolerant
from events.risk import Risk

TEN_YEARS = 10 * 365 * 24 * 3600.0

LARGEST = 24 * 1024
"""Bytes of a spec without its prompt: it is a part of the state of its conversation."""

MOST_TAGGED = 1500
"""Bytes of all tags of a conversation: Temporal takes 2 KB for it to be found by."""


_MOMENT: TypeAdapter[NaiveDatetime] = TypeAdapter(NaiveDatetime)


def _moment(text: str) -> str:
    _MOMENT.validate_python(text)
    return text


def _few(tags: tuple[str, ...]) -> tuple[str, ...]:
    if (size := sum(len(tag.encode()) for tag in tags)) > MOST_TAGGED:
        raise ValueError(f"all tags together have {size:,} bytes, and {MOST_TAGGED:,} is the most")
    return tags


Seconds: TypeAlias = Annotated[float, Field(gt=0, le=TEN_YEARS, allow_inf_nan=False)]
Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
"""As long as what Temporal finds a workflow by."""
Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Moment: TypeAlias = Annotated[Timestamp, AfterValidator(_moment)]
Tags: TypeAlias = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], AfterValidator(_few)]


class ModelSpec(Tolerant):
    """Which model answers. `name` is litellm's, or `scripted:FILE`; keys stay with the worker.

    `timeout` is in seconds, for one answer. Where a capability is None, litellm's list of models
    tells; `max_input_tokens` is the context window.
    """

    name: Name
    api_base: str | None = None
    temperature: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_output_tokens: int | None = None
    max_input_tokens: int | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    native_tool_calling: bool | None = None
    """Whether the provider takes tools; False offers them through the prompt."""
    vision: bool | None = None
    """Whether images are sent; False leaves a note in their place."""
    prompt_caching: bool | None = None
    """Whether the prompt carries marks for the provider's cache."""
    timeout: Seconds = 600.0


class Limits(Tolerant):
    """Where a turn or a conversation ends: a status with a reason, never a crash.

    `max_iterations` counts the model's answers in one turn; all else is of the whole conversation:
    `max_budget` in US dollars, `max_tokens` in tokens both ways, `max_events` in events of the
    log, `deadline` as a moment in UTC.
    """

    max_iterations: Count = 500
    max_budget: Dollars | None = None
    max_tokens: Count | None = None
    max_events: Count | None = None
    deadline: Moment | None = None


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

    action_observation: Count = 4
    action_error: Count = 3
    monologue: Count = 3
    alternating: Count = 6
    window: int = Field(default=20, ge=0, le=50)


class NoCondenser(Tolerant):
    """The model is shown everything, until it does not fit any more."""

    kind: Literal["none"] = "none"


class RecentCondenser(Tolerant):
    """The first `keep_first` events of the view and the newest, `max_events` in all."""

    kind: Literal["recent"] = "recent"
    keep_first: Count = 2
    max_events: Count = 100


class AmortizedCondenser(Tolerant):
    """Beyond `max_size` events all but the first `keep_first` and the newest are forgotten.

    No summary is made; half of `max_size` is left.
    """

    kind: Literal["amortized"] = "amortized"
    max_size: Count = 240
    keep_first: Count = 2


class MaskingCondenser(Tolerant):
    """Observations before the newest `attention_window` events are shown as a short note.

    So are those of over `max_chars` characters, at any age, where that is set.
    """

    kind: Literal["observation_masking"] = "observation_masking"
    attention_window: Count = 100
    max_chars: Count | None = None


class BrowserMaskingCondenser(Tolerant):
    """Of the browser's observations only the newest `attention_window` are shown."""

    kind: Literal["browser_masking"] = "browser_masking"
    attention_window: Count = 1
    tools: tuple[str, ...] = ("browser*",)
    """Patterns of tool names, as in a shell."""


class SummaryCondenser(Tolerant):
    """A model summarises what is forgotten beyond `max_size` events or `max_tokens` tokens.

    `keep_first` events stay; at least `minimum_progress` of the view is forgotten, or nothing.
    `model` None means the agent's own.
    """

    kind: Literal["llm_summary"] = "llm_summary"
    max_size: Count = 240
    max_tokens: Count | None = None
    keep_first: Count = 2
    minimum_progress: float = Field(default=0.1, ge=0, le=1)
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
    start_timeout: Seconds = 60.0
    call_timeout: Seconds = 600.0


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
    agent: Name | None = None
    """What the agent is called; operators find its conversations by it."""
    fallbacks: tuple[ModelSpec, ...] = ()
    """Asked in this order when the model cannot answer."""
    title_model: ModelSpec | None = None
    """Gives the conversation a title; none means its first words."""
    system_prompt: str | None = None
    """None means the one in `agent/prompt.py`."""
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
    tags: Tags = ()
    workspace: str | None = None
    """A directory on the worker's machine; none means one of the conversation's own."""
    snapshots: bool | None = None
    """Whether the workspace is kept in the store; None: where it is the conversation's own."""
    network: bool = False
    """Whether commands may reach the network, where a sandbox keeps them from it."""
    secrets: tuple[Variable, ...] = ()
    """Names of values that the worker holds and a command gets which names them."""
    tool_timeout: Seconds = 3600.0
    heartbeat_timeout: float = Field(default=5.0, ge=1, le=3600)
    """How long a worker may be silent before its step is given to another."""
    idle_timeout: Seconds = 3600.0
    """How long a conversation with nothing to do keeps its workflow; its log outlives it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        size = len(self.model_dump_json(exclude={"system_prompt"}).encode())
        if size > LARGEST:
            raise ValueError(f"all but the prompt has {size:,} bytes, and {LARGEST:,} is the most")
        return self

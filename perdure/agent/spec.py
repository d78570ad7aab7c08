"""An agent: its model, its tools and its limits. It travels with the conversation."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias, TypedDict, Unpack

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from perdure.agent.extensions import McpServer, Skills
from perdure.agent.policies import (
    Confirmation,
    Count,
    Dollars,
    Limits,
    Name,
    Seconds,
    StuckThresholds,
    Tags,
    Variable,
)
from perdure.agent.tool_reference import tool_reference
from perdure.errors import Invalid
from perdure.events.base import Tolerant
from perdure.events.control import PROMPT_FIELDS
from perdure.events.validation_errors import describe_errors

MAX_SPEC_BYTES = 24 * 1024
"""Bytes of an agent without its prompt and instructions: it is part of a conversation's state."""


class ModelSpec(Tolerant):
    """The model to ask. `name` is litellm's, or `scripted:FILE`; the worker holds the keys.

    A capability that is None is taken from litellm's list of models.
    """

    name: Name
    api_base: str | None = None
    """The URL of a server of your own; an OpenAI-compatible one is like `http://127.0.0.1:8000/v1`."""
    temperature: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """The sampling temperature; None takes the provider's default."""
    max_output_tokens: int | None = None
    """The maximum of tokens of one response; a longer response is cut, and marked as such."""
    max_input_tokens: int | None = None
    """The context window, in tokens."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """How long the model reasons before it responds, if it can reason."""
    native_tool_calling: bool | None = None
    """Whether the provider takes tools; False offers them through the prompt."""
    vision: bool | None = None
    """Whether images are sent; False leaves a note in their place."""
    prompt_caching: bool | None = None
    """Whether the prompt carries cache markers for the provider."""
    max_message_chars: Annotated[int, Field(ge=2)] | None = Field(
        default=None, exclude_if=lambda chars: chars is None
    )
    """The most characters of a result that the model is shown; the middle of a longer one is cut
    out, in `llm_messages.json` too."""
    timeout: Seconds = 600.0
    """Seconds for one response."""
    input_price: Dollars | None = None
    """US dollars for a million tokens of the prompt; None takes litellm's list of prices."""
    output_price: Dollars | None = None
    """US dollars for a million tokens of the response."""


class NoCondenser(Tolerant):
    """Show the model everything until it does not fit any more."""

    kind: Literal["none"] = "none"


class RecentCondenser(Tolerant):
    """Show the first `keep_first` events of the view and the newest, `max_events` in all."""

    kind: Literal["recent"] = "recent"
    keep_first: Count = 2
    max_events: Count = 100


class AmortizedCondenser(Tolerant):
    """Beyond `max_size` events, forget all but the first `keep_first` and the newest.

    There is no summary; half of `max_size` is left.
    """

    kind: Literal["amortized"] = "amortized"
    max_size: Count = 240
    keep_first: Count = 2


class MaskingCondenser(Tolerant):
    """Show observations before the newest `attention_window` events as a short note."""

    kind: Literal["observation_masking"] = "observation_masking"
    attention_window: Count = 100
    max_chars: Count | None = None
    """Observations of more characters are shown as a note at any age."""


class BrowserMaskingCondenser(Tolerant):
    """Show only the newest `attention_window` observations of the browser."""

    kind: Literal["browser_masking"] = "browser_masking"
    attention_window: Count = 1
    tools: tuple[str, ...] = ("browser*",)
    """Patterns of tool names, as in a shell."""


class SummaryCondenser(Tolerant):
    """Have a model summarize what is forgotten beyond `max_size` events or `max_tokens` tokens.

    `keep_first` events stay; at least `minimum_progress` of the view is forgotten, or nothing.
    """

    kind: Literal["llm_summary"] = "llm_summary"
    max_size: Count = 240
    max_tokens: Count | None = None
    keep_first: Count = 2
    minimum_progress: float = Field(default=0.1, ge=0, le=1)
    model: ModelSpec | None = None
    """None means the agent's own model."""


class CustomCondenser(Tolerant):
    """Have `function` plan what is forgotten beyond `max_size` events or `max_tokens` tokens.

    The function is a `module:attribute` or an entry point of CONDENSER_GROUP, and gets `options`.
    """

    kind: Literal["custom"] = "custom"
    function: Annotated[str, Field(min_length=1)]
    options: dict[str, JsonValue] = Field(default_factory=dict)
    max_size: Count = 240
    max_tokens: Count | None = None


SingleCondenser: TypeAlias = Annotated[
    NoCondenser
    | RecentCondenser
    | AmortizedCondenser
    | MaskingCondenser
    | BrowserMaskingCondenser
    | SummaryCondenser
    | CustomCondenser,
    Field(discriminator="kind"),
]


class PipelineCondenser(Tolerant):
    """Apply condensers in order until one of them condenses."""

    kind: Literal["pipeline"] = "pipeline"
    condensers: tuple[SingleCondenser, ...]


CondenserSpec: TypeAlias = Annotated[
    SingleCondenser | PipelineCondenser, Field(discriminator="kind")
]


def _expand_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


NamedModel: TypeAlias = Annotated[ModelSpec, BeforeValidator(_expand_name)]
"""A model, which may be given by its name alone."""


class AgentFields(TypedDict, total=False):
    """The arguments of `Agent` beside its model."""

    agent: str | None
    fallbacks: Sequence[ModelSpec | str]
    title_model: ModelSpec | str | None
    system_prompt: str | None
    instructions: str | None
    tools: Sequence[str | Callable[..., Any]]
    code: str | None
    mcp: Sequence[McpServer]
    skills: Skills
    limits: Limits
    condenser: CondenserSpec
    stuck: StuckThresholds
    confirmation: Confirmation
    analyzers: Sequence[str]
    parallel: int
    tags: Sequence[str]
    workspace: str | None
    snapshots: bool | None
    network: bool
    secrets: Sequence[str]
    tool_timeout: float
    heartbeat_timeout: float
    idle_timeout: float
    finished_timeout: float
    local_activities: bool


class Agent(Tolerant):
    """An agent: its model, its tools and its limits; times are in seconds.

    A model is a `ModelSpec` or a name alone. A tool is the name of a built-in one,
    `module:attribute`, or a function that workers can import. Raises Invalid.
    """

    model: NamedModel
    """The model that responds: a table, or only its name."""
    agent: Name | None = None
    """The agent's name; operators find its conversations by it."""
    fallbacks: tuple[NamedModel, ...] = ()
    """Models to ask in this order when the first one cannot respond."""
    title_model: NamedModel | None = None
    """The model that generates the title; None means the first words of the conversation."""
    system_prompt: str | None = None
    """The system prompt; None means perdure's own."""
    instructions: str | None = None
    """A text that is added to the system prompt."""
    tools: tuple[str, ...] = ("terminal", "file_editor", "think", "finish")
    """Tools by name: built-in ones, those of installed packages, or `module:attribute`."""
    code: str | None = None
    """The folder of its modules on the client's machine, which a worker of `perdure dev` shares."""
    mcp: tuple[McpServer, ...] = ()
    """Servers of the Model Context Protocol, whose tools the agent has as well."""
    skills: Skills = Skills()
    """The sources of skills and of instructions in files."""
    limits: Limits = Limits()
    """The limits at which a turn or the conversation stops."""
    condenser: CondenserSpec = SummaryCondenser()
    """The way in which a long conversation is condensed for the model."""
    stuck: StuckThresholds = StuckThresholds()
    """The number of repetitions after which an agent counts as stuck."""
    confirmation: Confirmation = Confirmation()
    """The actions that wait for a person's approval."""
    analyzers: tuple[str, ...] = ("model", "rules")
    """Analyzers that rate an action's risk where a policy asks for it: the highest rating counts.
    `module:attribute` names a custom one.
    """
    parallel: int = 8
    """The maximum of tool calls of one response that run side by side."""
    tags: Tags = ()
    """Words by which `perdure ls --tag` and Temporal find the conversation."""
    workspace: str | None = None
    """A directory on the worker's machine; None means a directory of the conversation's own."""
    snapshots: bool | None = None
    """Whether the workspace is saved in the store; None means only the conversation's own."""
    network: bool = False
    """Whether commands have network access in a sandbox."""
    secrets: tuple[Variable, ...] = ()
    """Names of the worker's secrets; a command that names one gets its value."""
    tool_timeout: Seconds = 3600.0
    """The time after which a tool call is stopped."""
    heartbeat_timeout: float = Field(default=2.0, ge=1, le=3600)
    """Seconds without a heartbeat after which another worker takes over a step."""
    idle_timeout: Seconds = 3600.0
    """Seconds for which a paused or waiting conversation keeps its workflow."""
    finished_timeout: Seconds = 60.0
    """Seconds for which a conversation keeps its workflow after a turn, `idle_timeout` at most.

    The next message starts a workflow again from the log."""
    local_activities: bool = False
    """Whether calls of `brief` tools, and saving, are local activities of Temporal.

    They cost less, and a signal that arrives meanwhile is seen after that."""

    def __init__(self, model: ModelSpec | str = "", **fields: Unpack[AgentFields]) -> None:
        if model == "":
            raise Invalid("An agent needs a model.", 'Name one: Agent(model="openai/gpt-5").')
        if unknown := sorted(fields.keys() - type(self).model_fields.keys()):
            names = ", ".join(type(self).model_fields)
            raise Invalid(f"An agent has no {unknown[0]!r}.", f"It has {names}.")
        if "tools" in fields:
            fields["tools"] = tuple(map(tool_reference, fields["tools"]))
        try:
            super().__init__(model=model, **fields)
        except ValidationError as error:
            raise Invalid(f"The agent is invalid: {describe_errors(error)}.") from error

    # pydantic calls an `__init__` of one's own for nested values too, unless it is marked so.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        try:
            size = len(self.model_dump_json(exclude=PROMPT_FIELDS).encode())
            for prompt in (self.system_prompt, self.instructions):
                (prompt or "").encode()  # raises for half a surrogate pair
        except ValueError as error:
            raise ValueError("it has half a surrogate pair, which is no character") from error
        if size > MAX_SPEC_BYTES:
            raise ValueError(
                f"all but its prompts has {size:,} bytes, and {MAX_SPEC_BYTES:,} is the most"
            )
        return self

"""An agent: its model, its tools and its limits. It travels with the conversation."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypedDict, Unpack

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from perdure.agent.condensers import DEFAULT_CONDENSER, expand_condenser
from perdure.agent.condensers import AmortizedCondenser as AmortizedCondenser
from perdure.agent.condensers import BrowserMaskingCondenser as BrowserMaskingCondenser
from perdure.agent.condensers import CondenserSpec as CondenserSpec
from perdure.agent.condensers import CustomCondenser as CustomCondenser
from perdure.agent.condensers import MaskingCondenser as MaskingCondenser
from perdure.agent.condensers import NoCondenser as NoCondenser
from perdure.agent.condensers import PipelineCondenser as PipelineCondenser
from perdure.agent.condensers import RecentCondenser as RecentCondenser
from perdure.agent.condensers import SingleCondenser as SingleCondenser
from perdure.agent.condensers import SummaryCondenser as SummaryCondenser
from perdure.agent.condensers import WindowCondenser as WindowCondenser
from perdure.agent.extensions import McpServer, Skills
from perdure.agent.memory import MemoryAccess
from perdure.agent.model_spec import ModelSpec as ModelSpec
from perdure.agent.model_spec import NamedModel
from perdure.agent.policies import (
    Confirmation,
    Limits,
    Name,
    Seconds,
    StuckThresholds,
    Tags,
    Variable,
)
from perdure.agent.response_schema import check_response_schema
from perdure.agent.surroundings import (
    Branch,
    ConversationName,
    Line,
    Metadata,
    RecordingKey,
    RepositoryUrl,
    SecretDescriptions,
    check_token_transport,
    is_none,
    split_described_secrets,
)
from perdure.agent.tool_reference import tool_reference
from perdure.errors import Invalid
from perdure.events.base import Tolerant
from perdure.events.control import LOG_FIELDS
from perdure.events.validation_errors import describe_errors

MAX_SPEC_BYTES = 24 * 1024
"""Bytes of an agent without the fields of any length: it is part of a conversation's state."""

MAX_DELEGATES_BYTES = 256 * 1024
"""Bytes of all agents that an agent may delegate to, with their prompts."""

MAX_SOURCES_BYTES = 32 * 1024
"""Bytes of the sources of an agent's fields."""


STATE_TOOL = "state"
"""The tool by which an agent reads and changes the session state."""


class NamedAgent(Tolerant):
    """An agent that another may delegate to by its name."""

    name: Name
    description: str = ""
    """What it is good for: the agent that delegates is told."""
    agent: "Agent"


class AgentFields(TypedDict, total=False):
    """The arguments of `Agent` beside its model."""

    agent: str | None
    fallbacks: Sequence[ModelSpec | str]
    title_model: ModelSpec | str | None
    system_prompt: str | None
    instructions: str | None
    tools: Sequence[str | Callable[..., Any]]
    response_schema: Mapping[str, JsonValue] | None
    code: str | None
    mcp: Sequence[McpServer]
    skills: Skills
    limits: Limits
    condenser: CondenserSpec | str
    stuck: StuckThresholds
    confirmation: Confirmation
    analyzers: Sequence[str]
    memory: MemoryAccess
    parallel: int
    tags: Sequence[str]
    workspace: str | None
    snapshots: bool | None
    network: bool
    secrets: Sequence[str] | Mapping[str, str]
    secret_descriptions: Mapping[str, str]
    repository: str | None
    branch: str | None
    repository_token: str | None
    git_user_name: str | None
    git_user_email: str | None
    metadata: Mapping[str, str]
    app_name: str | None
    parent: str | None
    replay: str | None
    hidden: bool
    state: Literal["shown"] | None
    replay_cells: bool
    tool_timeout: float
    heartbeat_timeout: float
    idle_timeout: float
    finished_timeout: float
    local_activities: bool
    delegates: Sequence[NamedAgent]


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
    response_schema: Annotated[
        dict[str, JsonValue] | None, Field(exclude_if=lambda schema: schema is None)
    ] = None
    """The JSON schema of the `outputs` of `finish`: an object; None takes no outputs."""
    code: str | None = None
    """The folder of its modules on the client's machine, which a worker of `perdure dev` shares."""
    mcp: tuple[McpServer, ...] = ()
    """Servers of the Model Context Protocol, whose tools the agent has as well."""
    skills: Skills = Skills()
    """The sources of skills and of instructions in files."""
    limits: Limits = Limits()
    """The limits at which a turn or the conversation stops."""
    condenser: Annotated[CondenserSpec, BeforeValidator(expand_condenser)] = DEFAULT_CONDENSER
    """The way in which a long conversation is condensed for the model."""
    stuck: StuckThresholds = StuckThresholds()
    """The number of repetitions after which an agent counts as stuck."""
    confirmation: Confirmation = Confirmation()
    """The actions that wait for a person's approval."""
    analyzers: tuple[str, ...] = ("model", "rules")
    """Analyzers that rate an action's risk where a policy asks for it: the highest rating counts.
    `module:attribute` names a custom one.
    """
    memory: MemoryAccess = Field(
        default=MemoryAccess(), exclude_if=lambda access: access == MemoryAccess()
    )
    """What it may do with the memories of its user."""
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
    """Names of secrets, the user's own or the worker's; a command that names one gets its value.

    A table of names and descriptions is taken apart."""
    secret_descriptions: SecretDescriptions = Field(default_factory=dict, exclude_if=operator.not_)
    """What the secrets are for, by name: the agent is told so."""
    repository: RepositoryUrl | None = Field(default=None, exclude_if=is_none)
    """The URL of a git repository that is cloned into the workspace before the first answer, into
    a directory that is called as the last part of the URL."""
    branch: Branch | None = Field(default=None, exclude_if=is_none)
    """The branch or tag of the repository; None means its default branch."""
    repository_token: Variable | None = Field(default=None, exclude_if=is_none)
    """The name of the secret that opens the repository; the agent itself need not have it."""
    git_user_name: Line | None = Field(default=None, exclude_if=is_none)
    """The name of the author of commits in the workspace."""
    git_user_email: Line | None = Field(default=None, exclude_if=is_none)
    """The address of the author of commits in the workspace."""
    metadata: Metadata = Field(default_factory=dict, exclude_if=operator.not_)
    """Words of the application's own, at most 16: they go with each call of the model."""
    app_name: Name | None = Field(default=None, exclude_if=is_none)
    """The application that the conversation belongs to."""
    parent: ConversationName | None = Field(default=None, exclude_if=is_none)
    """The conversation from which this one was started, by its id."""
    replay: RecordingKey | None = Field(default=None, exclude_if=is_none)
    """The key of a recording in the conversation's store, whose answers come before the model's; a
    start that is given recorded events sets it."""
    hidden: bool = Field(default=False, exclude_if=operator.not_)
    """Whether lists leave the conversation out, unless they are asked for such ones."""
    state: Literal["shown"] | None = Field(default=None, exclude_if=is_none)
    """`shown` tells the agent the values of the session state, and gives it the tool `state`; None
    leaves them to people, programs and other tools."""
    replay_cells: bool = Field(default=False, exclude_if=operator.not_)
    """Whether a kernel of the tool `ipython` that was lost with its worker is made again by running
    its cells again: only where they may run twice."""
    tool_timeout: Seconds = 3600.0
    """The time after which a tool call is stopped."""
    heartbeat_timeout: float = Field(default=2.0, ge=1, le=3600)
    """Seconds without a heartbeat after which another worker takes over a step; in a batch 5 at
    least, and where a worker has more than 32 steps at work a sixteenth of their number, up to
    15."""
    idle_timeout: Seconds = 3600.0
    """Seconds for which a paused or waiting conversation keeps its workflow."""
    finished_timeout: Seconds = 60.0
    """Seconds for which a conversation keeps its workflow after a turn, `idle_timeout` at most.

    The next message starts a workflow again from the log."""
    local_activities: bool = False
    """Whether calls of `brief` tools, and closing, are local activities of Temporal, as saving is.

    They cost less, and a signal that arrives meanwhile is seen after that."""
    delegates: tuple[NamedAgent, ...] = Field(default=(), exclude_if=lambda agents: not agents)
    """The agents to which `delegate` hands tasks by their names; in a file these are names."""
    sources: dict[str, str] = Field(default_factory=dict, exclude_if=lambda sources: not sources)
    """Where each field was said, such as `limits.max_budget`; all others are perdure's defaults."""

    @property
    def memory_app(self) -> str:
        """The application to which its memories belong; empty for none."""
        return (self.app_name or "") if self.memory.app is None else self.memory.app

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

    @property
    def all_tools(self) -> tuple[str, ...]:
        """The tools by name, with the one that an agent has which is shown the state."""
        needs_state = self.state == "shown" and STATE_TOOL not in self.tools
        return (*self.tools, STATE_TOOL) if needs_state else self.tools

    @model_validator(mode="before")
    @classmethod
    def _split_secrets(cls, fields: Any) -> Any:
        return split_described_secrets(fields)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_response_schema(self.response_schema, self.tools)
        try:
            size = len(self.model_dump_json(exclude=LOG_FIELDS).encode())
            others = len(self.model_dump_json(include={"delegates"}).encode())
            sources = sum(len(f"{name}{it}".encode()) for name, it in self.sources.items())
            for prompt in (self.system_prompt, self.instructions):
                (prompt or "").encode()  # raises for half a surrogate pair
        except ValueError as error:
            raise ValueError("it has half a surrogate pair, which is no character") from error
        if self.repository is None and (self.branch or self.repository_token):
            raise ValueError("it has a branch or a token of no repository: name the `repository`")
        if self.repository is not None and self.repository_token is not None:
            check_token_transport(self.repository)
        _check_size("all but its prompts", size, MAX_SPEC_BYTES)
        _check_size("what its `delegates` are", others, MAX_DELEGATES_BYTES)
        _check_size("what its `sources` say", sources, MAX_SOURCES_BYTES)
        return self


def _check_size(what: str, size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"{what} has {size:,} bytes, and {most:,} is the most")

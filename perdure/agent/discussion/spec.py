"""The spec of a discussion: its topic, its agents and moderator, its phases and limits."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationError, model_validator

from perdure.agent.discussion.log_state import END
from perdure.agent.discussion.pruning import AskedPolicy, ByType
from perdure.agent.policies import Dollars, Name, Seconds
from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.events.base import Tolerant
from perdure.events.discussion import MODERATOR, SYSTEM, SessionId
from perdure.events.validation_errors import describe_errors

MAX_AGENTS = 20
MAX_PHASES = 50
MAX_TEXT_CHARS = 8000
"""Characters of a topic or a persona: the topic stands in every prompt."""


def _check_agent_id(name: str) -> str:
    if name in (MODERATOR, SYSTEM):
        raise ValueError(f"no agent may be called {name}")
    return name


AgentId: TypeAlias = Annotated[
    str, Field(pattern=r"^[^\s\x00-\x1f]([^\x00-\x1f]{0,62}\S)?$"), AfterValidator(_check_agent_id)
]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)]
Times: TypeAlias = Annotated[int, Field(ge=1, le=1000)]


def _take_agent(fields: Any, own: frozenset[str]) -> Any:
    """Read the fields of an agent that stand beside its own in a table; it has no tools then."""
    if not isinstance(fields, Mapping) or "agent" in fields:
        return fields
    agent = {name: value for name, value in fields.items() if name not in own}
    rest = {name: value for name, value in fields.items() if name in own}
    if "model" not in agent:
        return fields if agent else rest
    return {**rest, "agent": Agent(**{"tools": (), **agent})}


class DiscussionAgent(Tolerant):
    """An agent of a discussion; the fields of `agent` may stand beside `id` in a table."""

    id: AgentId
    """The name by which the others know it."""
    persona: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""
    """Who it is and what it stands for, in plain words; the others are not told."""
    agent: Agent
    """Its model, its tools and its own limits; given by fields in a table, it has no tools."""

    @model_validator(mode="before")
    @classmethod
    def _read_table(cls, fields: Any) -> Any:
        return _take_agent(fields, frozenset(("id", "persona")))


class Moderator(Tolerant):
    """The part that grants speeches and sums up: a policy alone, or an agent."""

    policy: Literal["round_robin", "urgency", "model"] = "urgency"
    """In turn, the most urgent first, or as the moderator's model decides."""
    persona: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""
    """How it should moderate."""
    agent: Agent | None = None
    """Its model writes the summaries; without one they list who said what."""

    @model_validator(mode="before")
    @classmethod
    def _read_table(cls, fields: Any) -> Any:
        if isinstance(fields, str):
            fields = {"policy": fields}
        return _take_agent(fields, frozenset(("policy", "persona")))

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.policy == "model" and self.agent is None:
            raise ValueError("the policy `model` needs the `model` of the moderator")
        return self


class Phase(Tolerant):
    """A part of the discussion, which ends in a summary."""

    name: Name
    rounds: Times = 1
    """The number of rounds, or the most of them where something else may end the phase."""
    speakers: tuple[AgentId, ...] = ()
    """The agents that may speak; none means all."""
    speeches: Times | None = None
    """The most speeches granted in one round; None grants one to each that wants to speak."""
    end: Literal["rounds", "consensus", "vote"] = "rounds"
    """What ends it before all rounds are over: nothing; that nobody wants to speak any more, or
    the moderator's model sees a consensus; or a vote after each round that finds a majority."""
    question: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""
    """What is voted on; none means the topic."""
    options: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ("yes", "no")
    """The ballots that count."""
    majority: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """The part of all ballots that the winner must exceed."""
    instructions: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""
    """What the agents are told about this phase."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if len(set(map(str.casefold, self.options))) != len(self.options) or len(self.options) < 2:
            raise ValueError("a vote needs two options at least, which differ")
        return self


class DiscussionLimits(Tolerant):
    """Limits at which a discussion ends with what it has."""

    budget: Dollars | None = None
    """US dollars of all agents and the moderator together."""
    turns: Times | None = None
    """Speeches in all."""
    time: Seconds | None = None
    """Seconds from its start; turns that run then are interrupted."""
    speech_tokens: Annotated[int, Field(ge=16)] | None = None
    """The most tokens of one response of an agent; a longer one is cut."""
    turn_time: Seconds = 600.0
    """Seconds for one turn of an agent, after which it is interrupted and passed over."""


class DiscussionSpec(Tolerant):
    """A discussion of several agents; `[agent]` of a table has what all of them share."""

    topic: Text
    agents: Annotated[tuple[DiscussionAgent, ...], Field(min_length=1, max_length=MAX_AGENTS)]
    moderator: Moderator = Moderator()
    phases: Annotated[tuple[Phase, ...], Field(min_length=1, max_length=MAX_PHASES)] = (
        Phase(name="discussion"),
    )
    limits: DiscussionLimits = DiscussionLimits()
    prune: AskedPolicy | None = ByType(keep_types=("SUMMARY", "SYSTEM"))
    """What is taken out of the readers' sight after a phase; None takes nothing out."""

    @model_validator(mode="before")
    @classmethod
    def _share_agent(cls, fields: Any) -> Any:
        """Fill the tables of agents and moderator with the fields of the table `agent`."""
        if not isinstance(fields, Mapping) or not isinstance(fields.get("agent"), Mapping):
            return fields
        shared = dict(fields["agent"])
        changed = {name: value for name, value in fields.items() if name != "agent"}

        def fill(table: Any) -> Any:
            given = not isinstance(table, Mapping) or "agent" in table
            return table if given else {**shared, **table}

        if isinstance(changed.get("agents"), list | tuple):
            changed["agents"] = [fill(table) for table in changed["agents"]]
        moderator = changed.get("moderator")
        if isinstance(moderator, Mapping) and moderator.get("policy") == "model":
            changed["moderator"] = fill({"tools": (), **moderator})
        return changed

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        ids = [agent.id for agent in self.agents]
        phases = [phase.name for phase in self.phases]
        for names, kind in ((ids, "agents"), (phases, "phases")):
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"two {kind} are called {twice[0]}")
        if END in phases:
            raise ValueError(f"no phase may be called {END}: that is where the last one leads")
        for phase in self.phases:
            if unknown := [name for name in phase.speakers if name not in ids]:
                raise ValueError(f"the phase {phase.name} names {unknown[0]}, who is no agent")
        return self

    def speakers(self) -> tuple[str, ...]:
        """Return the names of those who have conversations: the agents, and a moderator's model."""
        names = tuple(agent.id for agent in self.agents)
        return (*names, MODERATOR) if self.moderator.agent else names

    def all_agents(self) -> tuple[Agent, ...]:
        """Return the agents, and that of the moderator's model."""
        agents = tuple(each.agent for each in self.agents)
        return (*agents, self.moderator.agent) if self.moderator.agent else agents


def parse_discussion(fields: Mapping[str, Any]) -> DiscussionSpec:
    """Parse a spec, as a table. Raises Invalid, also for a key that nothing reads."""
    if problem := find_unknown_key(fields):
        raise Invalid(f"This is no discussion: {problem}.")
    try:
        return DiscussionSpec.model_validate(fields)
    except ValidationError as error:
        raise Invalid(f"This is no discussion: {describe_errors(error)}.") from error


def find_unknown_key(fields: Mapping[str, Any]) -> str | None:
    """Return a sentence about the first key that no discussion has; agents have their own check.

    The spec itself ignores keys, as a later version may store more of them.
    """
    tables: list[tuple[str, Any, Iterable[str]]] = [
        ("a discussion", fields, (*DiscussionSpec.model_fields, "agent")),
        ("a table of limits", fields.get("limits"), DiscussionLimits.model_fields),
    ]
    phases = fields.get("phases")
    if isinstance(phases, list | tuple):
        tables += [("a phase", phase, Phase.model_fields) for phase in phases]
    for owner, table, known in tables:
        if isinstance(table, Mapping) and (unknown := [key for key in table if key not in known]):
            names = ", ".join(known)
            return f"{owner} has no key {unknown[0]!r}, but {names}"
    return None


class Outline(Tolerant):
    """The part of a spec that the workflow has to know: no prompts, no models."""

    agents: tuple[str, ...]
    policy: Literal["round_robin", "urgency", "model"]
    has_model: bool
    phases: tuple[Phase, ...]
    limits: DiscussionLimits
    prune: AskedPolicy | None = None


def outline(spec: DiscussionSpec) -> Outline:
    """Return the outline of a spec; the phases name all who may speak, and keep no long texts."""
    ids = tuple(agent.id for agent in spec.agents)
    phases = (
        phase.model_copy(
            update={"speakers": phase.speakers or ids, "question": "", "instructions": ""}
        )
        for phase in spec.phases
    )
    return Outline(
        agents=ids,
        policy=spec.moderator.policy,
        has_model=spec.moderator.agent is not None,
        phases=tuple(phases),
        limits=spec.limits,
        prune=spec.prune,
    )


class DiscussionKey(Tolerant):
    """The address of a discussion: its user and its id."""

    user_id: str
    session_id: SessionId

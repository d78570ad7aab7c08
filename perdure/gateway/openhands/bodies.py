"""The bodies of requests of OpenHands' client; fields that are not served are passed over."""

from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from perdure.agent.policies import Confirmation
from perdure.events.base import Tolerant

JsonObject: TypeAlias = dict[str, Any]
TagKey: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+$", max_length=64)]
TagValue: TypeAlias = Annotated[str, StringConstraints(max_length=256)]
OpenHandsTags: TypeAlias = Annotated[dict[TagKey, TagValue], Field(max_length=50)]

POLICIES = {"NeverConfirm": "never", "AlwaysConfirm": "always", "ConfirmRisky": "risky"}
"""Our policies of confirmation, by OpenHands' names."""


class Policy(Tolerant):
    """A policy of confirmation."""

    kind: Literal["NeverConfirm", "AlwaysConfirm", "ConfirmRisky"]
    threshold: Literal["LOW", "MEDIUM", "HIGH"] = "HIGH"
    confirm_unknown: bool = True

    def confirmation(self) -> Confirmation:
        return Confirmation.model_validate(
            {
                "policy": POLICIES[self.kind],
                "threshold": self.threshold,
                "confirm_unknown": self.confirm_unknown,
            }
        )


def policy_of(confirmation: Confirmation) -> JsonObject:
    """Return a policy of confirmation as OpenHands has it."""
    kind = next(name for name, policy in POLICIES.items() if policy == confirmation.policy)
    if kind != "ConfirmRisky":
        return {"kind": kind}
    threshold, unknown = confirmation.threshold, confirmation.confirm_unknown
    return {"kind": kind, "threshold": threshold, "confirm_unknown": unknown}


class TextPart(Tolerant):
    type: Literal["text"]
    text: Annotated[str, Field(max_length=1_000_000)]


class ImagePart(Tolerant):
    type: Literal["image"]
    image_urls: Annotated[tuple[str, ...], Field(max_length=20)]


ContentPart: TypeAlias = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class SentMessage(Tolerant):
    """A message; without `run` it is only recorded."""

    role: Literal["user"] = "user"
    content: Annotated[tuple[ContentPart, ...], Field(max_length=100)] = ()
    run: bool = False

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[str, ...]:
        parts = (part for part in self.content if isinstance(part, ImagePart))
        return tuple(url for part in parts for url in part.image_urls)


class StuckDetection(Tolerant):
    """The numbers of repetitions after which an agent is stuck."""

    action_observation: int = Field(default=4, ge=1)
    action_error: int = Field(default=3, ge=1)
    monologue: int = Field(default=3, ge=1)
    alternating_pattern: int = Field(default=6, ge=1)


class Workspace(Tolerant):
    kind: str = "LocalWorkspace"
    working_dir: str = "workspace"


class ClientModel(Tolerant):
    model: str | None = None


class ClientTool(Tolerant):
    name: Annotated[str, Field(max_length=256)]


class ClientContext(Tolerant):
    system_message_suffix: Annotated[str, Field(max_length=1_000_000)] | None = None


class ClientAgent(Tolerant):
    """The fields of a client's agent that decide anything here."""

    kind: str = "Agent"
    llm: ClientModel | None = None
    tools: Annotated[tuple[ClientTool, ...], Field(max_length=1000)] | None = None
    mcp_config: Any = None
    condenser: JsonObject | None = None
    agent_context: ClientContext | None = None


class StartBody(Tolerant):
    """`POST /api/conversations`: `agent` is that of the client, with its keys in the clear.

    `agent_fields` are those of its fields that are read.
    """

    agent: JsonObject
    agent_fields: Annotated[ClientAgent, Field(validation_alias="agent")]
    conversation_id: UUID | None = None
    initial_message: SentMessage | None = None
    max_iterations: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    stuck_detection: bool = True
    stuck_detection_thresholds: StuckDetection | None = None
    confirmation_policy: Policy | None = None
    workspace: Workspace = Workspace()
    tool_module_qualnames: Annotated[dict[str, str], Field(max_length=1000)] = Field(
        default_factory=dict
    )
    client_tools: tuple[JsonObject, ...] = ()
    plugins: tuple[JsonObject, ...] | None = None
    secrets: dict[str, Any] = Field(default_factory=dict)
    tags: OpenHandsTags = Field(default_factory=dict)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a title has more than blanks")
    return text


Title: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(_not_blank)
]


class ChangeBody(Tolerant):
    """`PATCH /api/conversations/{id}`: `tags` replace all earlier ones."""

    title: Title | None = None
    tags: OpenHandsTags | None = None


class PolicyBody(Tolerant):
    policy: Policy


class AnalyzerBody(Tolerant):
    security_analyzer: JsonObject | None


class AnswerBody(Tolerant):
    """`POST …/events/respond_to_confirmation`."""

    accept: bool
    reason: Annotated[str, Field(max_length=8000)] = "User rejected the action."


class QuestionBody(Tolerant):
    question: Annotated[str, Field(max_length=1_000_000)]


class SecretsBody(Tolerant):
    secrets: Annotated[dict[str, str | JsonObject], Field(max_length=100)]


class ForkBody(Tolerant):
    """`POST …/fork`: the fork ends with the event `from_event_id`, or has all.

    With `reset_metrics` its usage is counted from there on.
    """

    id: UUID | None = None
    title: Title | None = None
    tags: OpenHandsTags | None = None
    from_event_id: Annotated[str, Field(max_length=64)] | None = None
    reset_metrics: bool = True

"""The condensers of an agent: what a long conversation leaves of itself for the model."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue

from perdure.agent.model_spec import ModelSpec
from perdure.agent.policies import Count
from perdure.events.base import Tolerant


class NoCondenser(Tolerant):
    """Show the model everything until it does not fit any more."""

    kind: Literal["none"] = "none"


class RecentCondenser(Tolerant):
    """Show the first `keep_first` events of the view and the newest, `max_events` in all."""

    kind: Literal["recent"] = "recent"
    keep_first: Count = 2
    max_events: Count = 100


class WindowCondenser(Tolerant):
    """Forget half of the view, without a summary, after a prompt that was too long.

    The first `keep_first` events stay. Where that is not enough, and where a person asks, the other
    condensers of a pipeline decide.
    """

    kind: Literal["window"] = "window"
    keep_first: Count = 4


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
    | WindowCondenser
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


PRESET = "default"
"""The kind of a condenser that is the default one, with sizes of one's own."""

DEFAULT_CONDENSER = PipelineCondenser(
    condensers=(
        WindowCondenser(),
        BrowserMaskingCondenser(attention_window=2),
        SummaryCondenser(max_size=120, keep_first=4),
    )
)
"""A window on request, few results of the browser, and a summary of what is old."""


def expand_condenser(value: Any) -> Any:
    """Expand the kind of a condenser, and the default one, whose sizes are those of its summary."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping) or value.get("kind", PRESET) != PRESET:
        return value
    sizes = {name: size for name, size in value.items() if name != "kind"}
    return with_sizes(DEFAULT_CONDENSER.model_dump(), sizes)


def with_sizes(pipeline: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pipeline with other fields of its summary condenser."""
    kind = SummaryCondenser().kind
    condensers = [
        {**each, **sizes} if isinstance(each, Mapping) and each.get("kind") == kind else each
        for each in pipeline["condensers"]
    ]
    return {**pipeline, "condensers": condensers}

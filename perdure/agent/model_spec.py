"""A model of an agent."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from perdure.agent.policies import Dollars, Name, Seconds
from perdure.events.base import Tolerant


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


def _expand_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


NamedModel: TypeAlias = Annotated[ModelSpec, BeforeValidator(_expand_name)]
"""A model, which may be given by its name alone."""

"""What one agent is: its model, its tools and its limits. Travels with the conversation."""

from events.base import Tolerant

DEFAULT_PROMPT = """\
You are a careful agent that works in a directory of its own with the tools it is given.
Look before you change anything, check what you did, and say plainly what you could not do.
Call `finish` with a short report when the task is done.
"""


class ModelSpec(Tolerant):
    """Which model answers. `name` is litellm's, or `scripted:FILE`; keys stay with the worker.

    `timeout` is in seconds, for one answer.
    """

    name: str
    api_base: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    timeout: float = 600.0


class Limits(Tolerant):
    """Where a turn or a conversation ends: a status with a reason, never a crash.

    `max_iterations` counts the model's answers in one turn; `max_budget` is US dollars for the
    whole conversation.
    """

    max_iterations: int = 500
    max_budget: float | None = None


class Spec(Tolerant):
    """`tools` are names of built-in tools or `module:attribute`; times are in seconds."""

    model: ModelSpec
    system_prompt: str | None = None
    """None means `DEFAULT_PROMPT`."""
    tools: tuple[str, ...] = ("terminal", "file_editor", "think", "finish")
    limits: Limits = Limits()
    workspace: str | None = None
    """A directory on the worker's machine; none means one of the conversation's own."""
    tool_timeout: float = 3600.0
    heartbeat_timeout: float = 5.0
    """How long a worker may be silent before its step is given to another."""
    idle_timeout: float = 3600.0
    """How long a conversation with nothing to do keeps its workflow; its log outlives it."""

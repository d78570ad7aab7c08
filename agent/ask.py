"""A question beside the conversation: the agent answers it, and nothing of it is kept."""

from typing import Literal

from events.base import Frozen
from events.usage import Usage

ASIDE = """\
This is a question beside your task. Answer it in words, from what you know by now, and call no \
tool: nothing will be done, neither the question nor your answer will be kept, and your task goes \
on as if you had not been asked.

{question}"""


class Ask(Frozen):
    """Answer a question about what the log holds before the task's base."""

    kind: Literal["llm.ask"] = "llm.ask"
    question: str


class Aside(Frozen):
    """What the agent answered, and what it cost."""

    text: str
    usage: Usage

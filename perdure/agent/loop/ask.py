"""A question beside the conversation: the agent answers it, and the log keeps nothing of it."""

from typing import Literal

from perdure.events.base import Frozen
from perdure.events.usage import Usage

QUESTION_PROMPT = """\
This is a question beside your task. Answer it in words, from what you know by now, and call no \
tool: nothing will be done, neither the question nor your answer will be kept, and your task goes \
on as if you had not been asked.

{question}"""


class Ask(Frozen):
    """Answer a question from what the log holds before the task's base."""

    kind: Literal["llm.ask"] = "llm.ask"
    question: str


class AskResponse(Frozen):
    """The agent's answer to a question beside the conversation, and its cost."""

    text: str
    usage: Usage

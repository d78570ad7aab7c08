"""The memories of a conversation: a summary, and its turns.

They follow from its log, under keys that follow from its id: to ingest it again changes only what
has changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.agent.spec import Agent
from perdure.api.memories import PutMemory
from perdure.events.actions import FinishAction
from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent

MAX_PART_CHARS = 4000
"""Characters of one memory of a turn: a longer turn has several."""

MAX_QUOTE_CHARS = 1500
"""Characters of the first request and the last answer in a summary without a model's own."""

MAX_TAGS = 32


@dataclass
class Turn:
    """A question of the user with the agent's answer; `seq` is the slot of the question."""

    seq: int
    question: str
    answers: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        return "\n\n".join(self.answers)

    @property
    def text(self) -> str:
        answer = f"\n\nAgent: {self.answer}" if self.answers else ""
        return f"User: {self.question}{answer}"


@dataclass
class ConversationMemories:
    """The memories of a conversation, collected from the entries of its log in their order."""

    conversation_id: str
    turns: list[Turn] = field(default_factory=list)
    title: str = ""
    summary: str = ""
    """The newest summary that a model has made of it."""

    def add(self, entry: Entry) -> None:
        match entry.event:
            case MessageEvent(source="user", llm_message=message):
                if text := join_text(message.content).strip():
                    self.turns.append(Turn(entry.seq, text))
            case MessageEvent(source="agent", llm_message=message):
                self._answer(join_text(message.content))
            case ActionEvent(action=FinishAction(message=text)):
                self._answer(text)
            case Condensation(summary=str(text)):
                self.summary = text.strip()
            case ConversationStateUpdateEvent(key="title", value=str(title)):
                self.title = title

    def build(self, agent: Agent) -> Iterator[PutMemory]:
        """Yield the memories: the summary, then the turns; none of one without a message."""
        if self.turns:
            yield self._build("summary", self._summarize(), agent, self.turns[0].seq)
        for number, turn in enumerate(self.turns):
            for part, text in enumerate(split_text(turn.text, MAX_PART_CHARS)):
                name = f"turn:{number}" + (f":{part}" if part else "")
                yield self._build(name, text, agent, turn.seq)

    def _answer(self, text: str) -> None:
        if self.turns and text.strip():
            self.turns[-1].answers.append(text.strip())

    def _summarize(self) -> str:
        title = f"{self.title}\n\n" if self.title else ""
        if self.summary:
            return split_text(title + self.summary, MAX_PART_CHARS)[0]
        first, last = self.turns[0].question, self.turns[-1].answer
        answer = f"\n\nThe last answer: {last[:MAX_QUOTE_CHARS]}" if last else ""
        return f"{title}The request: {first[:MAX_QUOTE_CHARS]}{answer}"

    def _build(self, name: str, text: str, agent: Agent, seq: int) -> PutMemory:
        tags = dict.fromkeys((*agent.memory.tags, *(tag[:128] for tag in agent.tags)))
        return PutMemory(
            text=text.encode(errors="replace").decode(),
            key=f"conversation:{self.conversation_id}:{name}",
            app=agent.memory_app,
            tags=tuple(tags)[:MAX_TAGS],
            metadata={"part": name, "title": self.title, "seq": seq},
        )


def split_text(text: str, size: int) -> list[str]:
    """Split a text into parts of at most `size` characters, at the ends of paragraphs or words."""
    parts: list[str] = []
    while len(text) > size:
        end = max(text.rfind("\n\n", size // 2, size), text.rfind(" ", size // 2, size))
        end = end if end > 0 else size
        parts.append(text[:end].strip())
        text = text[end:]
    return [part for part in (*parts, text.strip()) if part]

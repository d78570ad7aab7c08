"""The whole load: conversations of plain and of equipped agents, and debates, by turns."""

from dataclasses import dataclass, field

from perdure.client.conversation import Conversation
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.ids import new_conversation_id
from reliability.chaos.load.conversations import (
    LoadConversation,
    LoadItem,
    make_agent,
    run_conversation,
)
from reliability.chaos.load.debates import LoadDebate, open_debate, run_debate
from reliability.chaos.load.equipment import make_equipped_agent
from reliability.chaos.load.equipped_scripts import equipped_scripts
from reliability.chaos.load.scripts import scripts
from reliability.chaos.stage import Stage

DEBATE_EVERY = 5
"""Of so many items, one is a debate."""

EQUIPPED_EVERY = 3
"""Of so many items, one is a conversation whose agent starts with a clone, secrets and servers."""


@dataclass
class Load:
    """The conversations and debates of a run.

    `undisturbed` is a debate that is held before the strikes.
    """

    stage: Stage
    seed: int
    conversations: list[LoadConversation] = field(default_factory=list)
    debates: list[LoadDebate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.undisturbed = open_debate(self.stage.client)
        self.plain_models = list(scripts(self.seed))
        self.equipped_models = list(equipped_scripts(self.seed))

    @property
    def items(self) -> list[LoadItem]:
        return [*self.conversations, *self.debates]

    def live(self) -> list[Conversation | DiscussionHandle]:
        """List what goes on at the moment."""
        return [
            *(item.conversation for item in self.conversations if item.end is None),
            *(item.handle for item in self.debates if item.end is None),
        ]

    async def run_item(self, number: int, lane: int) -> None:
        """Run the item with this number from beginning to end."""
        stage = self.stage
        if number % DEBATE_EVERY == DEBATE_EVERY - 1:
            debate = open_debate(stage.client)
            self.debates.append(debate)
            await run_debate(stage.client, debate, stage.model)
            return
        conversation = stage.client.conversation(new_conversation_id())
        equipped = number % EQUIPPED_EVERY == EQUIPPED_EVERY - 1
        models = self.equipped_models if equipped else self.plain_models
        address = (models[number % len(models)], stage.model)
        spec = make_equipped_agent(*address, stage.equipment) if equipped else make_agent(*address)
        talk = LoadConversation(conversation, equipped)
        self.conversations.append(talk)
        await run_conversation(talk, spec, f"{self.seed} {number} {lane}")

"""The items of an inbox, as events of the log."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from perdure.activities.inbox.repeated_messages import is_end_by_repeated_message, is_provoked
from perdure.activities.inbox.state_notes import record_state_note
from perdure.activities.inbox.wait_events import record_wait
from perdure.activities.support.inbox_events import rejection, state_update, to_event
from perdure.activities.support.load import load_event
from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.activities.support.stored_images import store_images
from perdure.activities.support.system_prompt import build_prompt
from perdure.activities.support.writer import Writer
from perdure.activities.workspace.recall import record_recall
from perdure.agent.loop.inbox import (
    Answer,
    InboxItem,
    Rejection,
    SpecChange,
    StateNote,
    UserMessage,
    WaitEnd,
    WaitStart,
)
from perdure.agent.loop.steps import Refusal
from perdure.agent.spec import Agent
from perdure.events.tools import ActionEvent
from perdure.tools.errors import CatalogError

SECRET_FIELDS = frozenset({"secrets", "secret_descriptions"})
"""Fields of an agent of which its prompt tells: a change is told anew."""


@dataclass
class ItemRecorder:
    """Records items in a log; `spec` is in force, and `skills` are those that were shown.

    Of a message that is `repeated` only its slot is recorded, for its sender.
    """

    resources: Resources
    writer: Writer
    spec: Agent
    skills: tuple[str, ...] | None
    repeated: Mapping[str, int]

    async def record_all(self, items: Sequence[InboxItem], refused: Refusal | None) -> None:
        """Record items in their order, after what they refuse by coming at all."""
        if refused is not None and is_provoked(items, self.repeated):
            await self._reject(refused)
        for nth, item in enumerate(items):
            if not is_end_by_repeated_message(item, items, self.repeated):
                await self._record(nth, item)

    async def _record(self, nth: int, item: InboxItem) -> None:
        part = f"item {nth}"
        match item:
            case Rejection():
                named = item.model_dump(include={"reason", "actor", "run"})
                await self._reject(Refusal(action_seqs=item.actions, **named))
            case WaitStart() | WaitEnd() | Answer():
                await record_wait(self.writer, part, item)
            case UserMessage(message_id=str(message_id)) if message_id in self.repeated:
                known = {"message_id": message_id, "seq": self.repeated[message_id]}
                await self.writer.write(part, state_update(now(), "repeated", known))
            case StateNote(key="state"):
                await record_state_note(self.resources, self.writer, part, item, self.spec)
            case _:
                event = await store_images(self.writer.log, to_event(item, now(), self.spec))
                await self.writer.write(part, event)
                await self._record_consequence(nth, item)

    async def _record_consequence(self, nth: int, item: InboxItem) -> None:
        """Record what a message recalls, and the prompt that tells of changed secrets."""
        if changes_secrets(item):
            changed = change_secrets(self.spec, item)
            with contextlib.suppress(CatalogError):  # then the old prompt stays in force
                prompt = await build_prompt(self.resources, self.writer.log, changed)
                await self.writer.write(f"prompt {nth}", prompt)
        if isinstance(item, UserMessage):
            self.skills = await record_recall(
                self.resources, self.writer, f"recall {nth}", item.text, self.spec, self.skills
            )

    async def _reject(self, refused: Refusal) -> None:
        """Answer rejected actions; an action that was answered meanwhile stays as it is."""
        for seq in refused.action_seqs:
            action = await load_event(self.writer.log, seq, ActionEvent)
            event = rejection(action, refused.reason, now(), refused.actor, refused.run)
            await self.writer.write(f"rejection {seq}", event)


def changes_shown_state(items: Sequence[InboxItem]) -> bool:
    """Tell whether items begin a turn, or change the state."""
    return any(
        isinstance(item, UserMessage) or (isinstance(item, StateNote) and item.key == "state")
        for item in items
    )


def changes_secrets(item: InboxItem) -> TypeGuard[SpecChange]:
    return isinstance(item, SpecChange) and not SECRET_FIELDS.isdisjoint(item.changes)


def change_secrets(spec: Agent, change: SpecChange) -> Agent:
    """Return an agent with the secrets of a change; a field without a value has its default."""
    names = set(SECRET_FIELDS.intersection(change.changes))
    fields = {name: change.changes[name] for name in names if change.changes[name] is not None}
    return Agent.model_validate({**spec.model_dump(mode="json", exclude=names), **fields})

"""Objects that OpenAI's API has of a user's conversations, and no log has."""

from datetime import datetime
from typing import Literal, TypeVar

from pydantic import ValidationError

from perdure.events.base import Frozen
from perdure.storage.errors import Altered
from perdure.storage.keys import check_user_id, openai_key
from perdure.storage.store import Store


class ReservedConversation(Frozen):
    """A conversation that was made without an agent, and begins with its first message."""

    created: datetime
    metadata: dict[str, str]


class Chat(Frozen):
    """The conversation in which a chat goes on, once one of its messages was changed."""

    conversation_id: str


Kind = Literal["conversations", "chats"]
ObjectT = TypeVar("ObjectT", bound=Frozen)


class OpenAiObjects:
    """The objects of one user. Raises ValueError for a bad user id; the last writer wins."""

    def __init__(self, store: Store, user_id: str) -> None:
        self._store = store
        self._user_id = check_user_id(user_id)

    async def load_reserved(self, conversation_id: str) -> ReservedConversation | None:
        return await self._load("conversations", conversation_id, ReservedConversation)

    async def save_reserved(self, conversation_id: str, reserved: ReservedConversation) -> None:
        await self._save("conversations", conversation_id, reserved)

    async def delete_reserved(self, conversation_id: str) -> None:
        await self._store.delete(openai_key(self._user_id, "conversations", conversation_id))

    async def find_chat(self, chat_id: str) -> str:
        """Return the id of the conversation in which a chat goes on: its own unless it forked."""
        chat = await self._load("chats", chat_id, Chat)
        return chat_id if chat is None else chat.conversation_id

    async def point_chat(self, chat_id: str, conversation_id: str) -> None:
        """Let a chat go on in another conversation."""
        await self._save("chats", chat_id, Chat(conversation_id=conversation_id))

    async def _load(self, kind: Kind, name: str, model: type[ObjectT]) -> ObjectT | None:
        key = openai_key(self._user_id, kind, name)
        if (body := await self._store.read(key)) is None:
            return None
        try:
            return model.model_validate_json(body)
        except ValidationError as error:
            raise Altered(key) from error

    async def _save(self, kind: Kind, name: str, value: Frozen) -> None:
        key = openai_key(self._user_id, kind, name)
        await self._store.replace(key, value.model_dump_json().encode())

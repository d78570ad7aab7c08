"""The ids of messages that AG-UI's clients get, which follow from a conversation's log alone.

They have the conversation in them: a client that brings one has been told of it.
"""

import hashlib

from perdure.agent.loop.inbox import UserMessage, find_message_error
from perdure.client.ids import derive_conversation_id, derive_message_id
from perdure.gateway.turns.parts import Called
from perdure.storage.keys import is_conversation_id


def find_conversation_id(user_id: str, thread_id: str) -> str:
    """Return the conversation of a thread: a UUID is its id, other names are the user's own."""
    name = thread_id.lower()
    if is_conversation_id(name):
        return name
    return derive_conversation_id(user_id, f"ag-ui\0{thread_id}")


def find_message_id(user_id: str, client_id: str) -> str:
    """Return the id by which the log knows a message: the client's, where a log can have that."""
    if find_message_error(UserMessage(text="said", message_id=client_id)) is None:
        return client_id
    return derive_message_id(user_id, f"ag-ui\0{client_id}")


class MessageIds:
    """The ids of the messages of one conversation."""

    def __init__(self, conversation_id: str) -> None:
        self._mark = f"{_hash(conversation_id)[:8]}_"

    def text(self, item_id: str) -> str:
        """Return the id of the message of a step: what it says and calls."""
        return self._make("msg", item_id)

    def reasoning(self, item_id: str) -> str:
        return self._make("reasoning", item_id)

    def result(self, item_id: str, call_id: str) -> str:
        """Return the id of the result of a call, which was made in a step."""
        return self._make("result", item_id, call_id)

    def subagent(self, call: Called) -> str:
        """Return the id of the sub-agent that a call has started."""
        return self._make("subagent", call.item_id, call.call_id)

    def is_own(self, message_id: str) -> bool:
        """Tell whether a message is of this conversation, and not the client's."""
        return message_id.partition("_")[2].startswith(self._mark)

    def _make(self, prefix: str, *origin: str) -> str:
        return f"{prefix}_{self._mark}{_hash(chr(0).join(origin))[:32]}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

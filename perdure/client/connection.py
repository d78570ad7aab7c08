"""The parts of a client that are slow to import: `Client` loads them when it connects."""

from perdure.agent.loop.model_queues import model_queue_name as model_queue_name
from perdure.client.conversation import Conversation as Conversation
from perdure.client.ids import new_conversation_id as new_conversation_id
from perdure.client.store import open_configured_store
from perdure.client.workflow import ConversationWorkflow as ConversationWorkflow
from perdure.embedded.discovery import await_stack
from perdure.embedded.record import open_stack_store
from perdure.errors import Unreachable
from perdure.settings.settings import Settings, load_settings
from perdure.storage.conversations import list_conversations as list_conversations
from perdure.storage.log.entry_cache import EntryCache as EntryCache
from perdure.storage.log.event_log import EventLog as EventLog
from perdure.storage.store import Store
from perdure.temporal.connect import connect as connect
from perdure.temporal.register_attributes import missing_attributes as missing_attributes


async def find_connection(settings: Settings | None) -> tuple[Settings, Store, str | None]:
    """Return settings, the store, and the address of Temporal where it is that of `perdure dev`.

    Given settings are used as they are; others are those of the environment, or of a stack that
    runs in the data folder if no store is set. Raises Unreachable, Invalid.
    """
    explicit, settings = settings is not None, settings or load_settings()
    if explicit or settings.store is not None:
        return settings, open_configured_store(settings), None
    stack = await await_stack(settings.data)
    if stack is None:
        raise Unreachable(
            f"No store is set, and no stack runs in {settings.data}.",
            "Start one with `perdure dev`, or set PERDURE_STORE and TEMPORAL_ADDRESS.",
        )
    settings = settings.model_copy(update={"store": stack.store_url})
    return settings, open_stack_store(stack), stack.temporal

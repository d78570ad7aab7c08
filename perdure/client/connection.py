"""The parts of a client that are slow to import: `Client` loads them when it connects."""

from perdure.agent.loop.model_queues import model_queue_name as model_queue_name
from perdure.client.address import WorkflowAddress as WorkflowAddress
from perdure.client.ask import ask as ask
from perdure.client.conversation import Conversation as Conversation
from perdure.client.fork import fork as fork
from perdure.client.ids import new_conversation_id as new_conversation_id
from perdure.client.workflow import ConversationWorkflow as ConversationWorkflow
from perdure.storage.conversations import list_conversations as list_conversations
from perdure.storage.granted_store import open_granted as open_granted
from perdure.storage.grants import Shareable as Shareable
from perdure.storage.keys import check_user_id as check_user_id
from perdure.storage.log.entry_cache import EntryCache as EntryCache
from perdure.storage.log.event_log import EventLog as EventLog
from perdure.storage.shared import list_shared as list_shared
from perdure.temporal.connect import connect as connect
from perdure.temporal.register_attributes import AttributeCheck as AttributeCheck

"""The parts of a client that are slow to import: `Client` loads them when it connects."""

from perdure.agent.loop.model_queues import model_queue_name as model_queue_name
from perdure.client.address import WorkflowAddress as WorkflowAddress
from perdure.client.agents.find_agent import find_agent as find_agent
from perdure.client.ask import ask as ask
from perdure.client.conversation import Conversation as Conversation
from perdure.client.conversation_log import open_conversation_log as open_conversation_log
from perdure.client.fork import fork as fork
from perdure.client.ids import new_conversation_id as new_conversation_id
from perdure.client.lists.lists import ConversationLists as ConversationLists
from perdure.client.lists.lists import ListFilter as ListFilter
from perdure.client.lists.lists import check_page_size as check_page_size
from perdure.client.vault import open_vault as open_vault
from perdure.client.workflow import ConversationWorkflow as ConversationWorkflow
from perdure.storage.conversations import list_conversations as list_conversations
from perdure.storage.log.entry_cache import EntryCache as EntryCache
from perdure.storage.shared import list_shared as list_shared
from perdure.storage.user_agents import UserAgents as UserAgents
from perdure.temporal.connect import connect as connect
from perdure.temporal.register_attributes import AttributeCheck as AttributeCheck

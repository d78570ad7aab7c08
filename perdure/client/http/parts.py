"""The parts of a gateway's client that are slow to import: it loads them when it is made."""

from perdure.agent.loop.ask import AskResponse as AskResponse
from perdure.api.conversations import AskQuestion as AskQuestion
from perdure.api.conversations import ForkConversation as ForkConversation
from perdure.api.conversations import ForkResult as ForkResult
from perdure.api.conversations import Page as Page
from perdure.api.keys import Me as Me
from perdure.api.secrets import PutSecret as PutSecret
from perdure.api.secrets import Secrets as Secrets
from perdure.client.fork_handle import Fork as Fork
from perdure.client.http.address import secret_path as secret_path
from perdure.client.http.connection import Connection as Connection
from perdure.client.http.conversation import HttpConversation as HttpConversation
from perdure.client.http.problems import build_body as build_body
from perdure.client.ids import new_conversation_id as new_conversation_id
from perdure.storage.shared import Shared as Shared

MAX_ASK_WAIT = 600.0
"""Seconds for which a gateway waits for the answer to a question."""

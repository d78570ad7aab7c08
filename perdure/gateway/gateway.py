"""What a gateway process has: the connections, and what it knows its callers by."""

from dataclasses import dataclass, field
from urllib.parse import quote

from perdure.client.agents.sources import default_folders
from perdure.client.client import Client
from perdure.client.lists.lists import ConversationLists
from perdure.client.memory.service import open_memories
from perdure.gateway.agents.catalog import AgentCatalog
from perdure.gateway.following.discussions import DiscussionFollowers
from perdure.gateway.following.follower import EntryListener
from perdure.gateway.following.followers import Followers
from perdure.gateway.identity.identities import Identities
from perdure.gateway.identity.sites import Site
from perdure.gateway.limits.connections import Connections
from perdure.gateway.limits.held_bytes import MAX_HELD_BYTES, HeldBytes
from perdure.gateway.limits.rates import Rates
from perdure.gateway.turns.turns import Turns
from perdure.gateway.views.hidden import HiddenConversations
from perdure.memory.service import MemoryService
from perdure.settings.settings import Settings
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.store import Store


@dataclass
class Gateway:
    """A gateway: it keeps nothing that the store and Temporal do not have.

    `client` has the connections; requests use that of their own user. `is_local` says that it
    serves on a loopback address. Raises SettingsError.
    """

    client: Client
    settings: Settings
    is_local: bool = True
    on_entry: EntryListener | None = None
    """Is called with each event that is sent to whoever follows its conversation."""
    site: Site = field(init=False)
    identities: Identities = field(init=False)
    agents: AgentCatalog = field(init=False)
    lists: ConversationLists = field(init=False)
    hidden: HiddenConversations = field(init=False)
    followers: Followers = field(init=False)
    turns: Turns = field(init=False)
    memories: MemoryService = field(init=False)
    discussions: DiscussionFollowers = field(init=False)
    rates: Rates = field(init=False)
    connections: Connections = field(init=False)
    held_bytes: HeldBytes = field(init=False)
    snapshots: SnapshotCache = field(default_factory=SnapshotCache)

    def __post_init__(self) -> None:
        limit = self.settings.gateway_max_concurrent_conversations
        self.client = self.client.with_session_limit(limit or None)
        self.site = Site(self.settings.gateway_url, self.is_local)
        self.rates = Rates(self.settings.gateway_rates)
        self.connections = Connections(self.settings.gateway_connections)
        self.held_bytes = HeldBytes(max(MAX_HELD_BYTES, 4 * self.settings.gateway_max_body))
        self.identities = Identities(self.store, self.settings)
        self.agents = AgentCatalog(self.settings, default_folders())
        self.lists = ConversationLists(self.store, is_resident=True)
        self.hidden = HiddenConversations(self.store)
        self.memories = open_memories(self.settings.memory, self.store)
        self.followers = Followers(
            self.client, require_visible=self.hidden.require_visible, on_entry=self.on_entry
        )
        self.turns = Turns(self.client, self.followers.follow)
        self.discussions = DiscussionFollowers(self.client)

    @property
    def store(self) -> Store:
        return self.client.store

    @property
    def workflows_url(self) -> str | None:
        """The address of the list of workflows in Temporal's UI; None if it is not set."""
        ui = self.settings.gateway_temporal_ui
        if ui is None:
            return None
        return f"{ui.rstrip('/')}/namespaces/{quote(self.client.temporal.namespace)}/workflows"

    def client_for(self, user_id: str) -> Client:
        """Return the client of a user, which reaches nothing of anybody else's."""
        return self.client.as_user(user_id)

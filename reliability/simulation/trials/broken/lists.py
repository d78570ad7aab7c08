"""Lists that are wrong in ways that somebody might think of."""

from perdure.api.conversations import Conversation
from perdure.client.lists.lists import ConversationLists
from perdure.storage.conversations import list_ages
from perdure.storage.list_index import is_current, load_index
from perdure.storage.summary import Summary
from reliability.simulation.conversation import USER
from reliability.simulation.store import Access
from reliability.simulation.trials.lists import Desk


class TrustingLists(ConversationLists):
    """Lists that do not compare the index with the logs."""

    async def _summarize(
        self, user_id: str, name: str, indexed: Summary | None = None
    ) -> Summary | None:
        return indexed or await super()._summarize(user_id, name)


class TrustsTheIndex(Desk):
    """A list shows what the index says, though the conversation went on."""

    def __init__(self, store: Access) -> None:
        super().__init__(store)
        self.lists = TrustingLists(store)


class ListsBeforeTheirStates(ConversationLists):
    """Lists that take what an index says for right, as they did until 2026-11-26."""

    async def _summarize(
        self, user_id: str, name: str, indexed: Summary | None = None
    ) -> Summary | None:
        if indexed is not None and await is_current(self._store, user_id, indexed):
            return indexed
        return await super()._summarize(user_id, name)


class ShowsWhatRestsAtWork(Desk):
    """A list shows a conversation at work for ever if it was indexed before its state was saved."""

    def __init__(self, store: Access) -> None:
        super().__init__(store)
        self.lists = ListsBeforeTheirStates(store)


class ListsTheIndexAlone(Desk):
    """A list shows the conversations that came to rest under a worker that lived on."""

    async def read(self) -> dict[str, Conversation]:
        known = (await load_index(self.store, USER)).merge()
        return {name: item for name, item in (await super().read()).items() if name in known}


class RemembersWhatWasThere(Desk):
    """A process shows again what it has shown before."""

    def __init__(self, store: Access) -> None:
        super().__init__(store)
        self.shown: dict[str, Conversation] = {}

    async def read(self) -> dict[str, Conversation]:
        self.shown |= await super().read()
        return self.shown


class PurgesWhatIsListed(Desk):
    """A hidden conversation is not purged."""

    async def purge(self, name: str) -> None:
        if name in [found for _, found in await list_ages(self.store, USER)]:
            await super().purge(name)

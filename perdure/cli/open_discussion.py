"""The discussions that commands are about, over a gateway or without one."""

from perdure.cli.environment import connect_gateway, connect_servers, find_environment
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.protocol import DiscussionClient, DiscussionControl
from perdure.client.ids import split_owner
from perdure.settings.settings import Settings


async def connect_discussions(settings: Settings | None = None) -> DiscussionClient:
    """Connect to the discussions of the user, of the gateway if one is set."""
    settings = settings or (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.discussion.http_discussions import HttpDiscussions

        return HttpDiscussions(await connect_gateway(settings))
    return Discussions.from_client(await connect_servers(settings))


async def open_discussion(session: str) -> DiscussionControl:
    """Return the handle of an existing discussion, of another user for `USER/ID`.

    Raises NotFound, Invalid.
    """
    handle = (await connect_discussions()).get(*split_owner(session))
    await handle.spec()
    return handle

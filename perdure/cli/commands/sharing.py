"""`perdure share`, also of batches and discussions: what other users may do."""

from typing import Any, Protocol

from perdure.cli.batch.control import find_batch
from perdure.cli.declarations import batches, control, discussions
from perdure.cli.environment import connect_client, open_conversation
from perdure.cli.open_discussion import open_discussion
from perdure.cli.options import Format
from perdure.cli.output import show_result
from perdure.client.batch.protocol import BatchControl
from perdure.client.discussion.protocol import DiscussionControl
from perdure.client.protocol import ConversationHandle
from perdure.errors import Invalid


class ShareOptions(Protocol):
    """The options of all these commands."""

    user: str | None
    write: bool
    revoke: str | None
    output: Format


async def share(options: control.Share) -> None:
    conversation = open_conversation(await connect_client(), options.conversation_id)
    place = {"conversation_id": conversation.id, "owner": conversation.log.user_id}
    await _change(conversation, options, place, f"{conversation.log.user_id}/{conversation.id}")


async def share_batch(options: batches.Share) -> None:
    batch = await find_batch(options)
    place = {"batch": batch.name, "owner": batch.folder.user_id}
    await _change(batch, options, place, f"{batch.folder.user_id}/{batch.name}")


async def share_discussion(options: discussions.Share) -> None:
    discussion = await open_discussion(options.session)
    place = {"session_id": discussion.id, "owner": discussion.owner}
    await _change(discussion, options, place, f"{discussion.owner}/{discussion.id}")


async def _change(
    shared: ConversationHandle | BatchControl | DiscussionControl,
    options: ShareOptions,
    place: dict[str, Any],
    name: str,
) -> None:
    """Give or take back a grant as the options say, and show all that there are."""
    if options.revoke is not None and (options.user is not None or options.write):
        raise Invalid("A grant is given or taken back, not both.", "Run the command twice.")
    if options.write and options.user is None:
        raise Invalid("Name the user who may steer it.", "Write the user before --write.")
    if options.revoke is not None:
        await shared.revoke(options.revoke)
    if options.user is not None:
        await shared.grant(options.user, "write" if options.write else "read")
    grants = await shared.grants()
    fields = {**place, "grants": [grant.model_dump() for grant in grants]}
    lines = [f"{grant.user_id}  {grant.access}" for grant in grants]
    remark = f"Others name it {name}."
    show_result(fields, options.output, *(lines or ["No other user may read it."]), remark=remark)

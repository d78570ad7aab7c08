"""The commands of webhooks."""

from typing import Any

from perdure.api.webhooks import EVENT_NAMES, Webhook
from perdure.cli.declarations import webhooks as declarations
from perdure.cli.environment import connect_gateway, connect_servers, find_environment
from perdure.cli.output import escape_controls, note, print_list, show, show_result
from perdure.client.webhooks.protocol import WebhookClient, define_webhook


async def create(options: declarations.Create) -> None:
    events = EVENT_NAMES if options.on is None else tuple(options.on.replace(" ", "").split(","))
    definition = define_webhook(options.url, events=events, conversation_id=options.conversation)
    made = await (await _connect()).create(definition)
    show_result(_fields(made), options.output, made.id, made.secret)
    if options.output == "text":
        note(
            "The second line is the secret of its signatures, which nothing shows again; "
            f"`perdure webhook test {made.id}` tries it."
        )


async def list_webhooks(options: declarations.List) -> None:
    webhooks = await (await _connect()).list_webhooks()
    with print_list(_fields, _show_line, options.output) as print_item:
        for webhook in webhooks:
            print_item(webhook)
    if not webhooks and options.output == "text":
        note("There are no webhooks: `perdure webhook create` makes one.")


async def show_webhook(options: declarations.Show) -> None:
    webhook = await (await _connect()).get(options.id)
    lines = [escape_controls(line) for line in _describe(webhook)]
    show_result(_fields(webhook), options.output, *lines)


async def test(options: declarations.Test) -> None:
    post_id = await (await _connect()).test(options.id)
    remark = f"It is on its way; `perdure webhook show {options.id}` says whether it was taken."
    show_result({"id": options.id, "post": post_id}, options.output, post_id, remark=remark)


async def rotate(options: declarations.Rotate) -> None:
    rotated = await (await _connect()).rotate(options.id)
    remark = "The secret of before signs as well for a day."
    show_result(_fields(rotated), options.output, rotated.secret, remark=remark)


async def delete(options: declarations.Delete) -> None:
    await (await _connect()).delete(options.id)
    show_result({"id": options.id, "deleted": True}, options.output, remark="It is deleted.")


async def _connect() -> WebhookClient:
    """Connect to the webhooks of the user, of the gateway if one is set."""
    settings = (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.webhooks.http_webhooks import HttpWebhooks

        return HttpWebhooks(await connect_gateway(settings))
    from perdure.client.webhooks.webhooks import Webhooks  # slow
    from perdure.webhooks.networks import parse_networks

    return Webhooks(await connect_servers(settings), parse_networks(settings.webhook_networks))


def _fields(webhook: Webhook) -> dict[str, Any]:
    return webhook.model_dump(mode="json", exclude_none=True)


def _show_line(webhook: Webhook) -> None:
    about = webhook.conversation_id or "all conversations"
    events = "ended" if webhook.ended else ",".join(webhook.events)
    show(escape_controls(f"{webhook.id}  {events:<32}  {about:<36}  {webhook.url}"))


def _describe(webhook: Webhook) -> list[str]:
    state = f"ended: {webhook.ended}" if webhook.ended else "active"
    about = webhook.conversation_id or "all conversations"
    return [
        f"{webhook.id}: {state}",
        f"posts {', '.join(webhook.events)} of {about}",
        f"to {webhook.url}",
        *(
            f"{it.started[:19].replace('T', ' ')} UTC  {it.status:<9}  {it.event:<8}  "
            f"{it.conversation_id or ''}".rstrip()
            for it in webhook.deliveries or ()
        ),
    ]

"""The commands of addresses."""

from typing import Any

from perdure.api.addresses import Address
from perdure.cli.arguments import read_text
from perdure.cli.declarations import addresses as declarations
from perdure.cli.environment import connect_gateway, connect_servers, find_environment
from perdure.cli.output import note, print_list, show, show_result
from perdure.client.webhooks.protocol import AddressClient, define_address
from perdure.settings.settings import Settings


async def create(options: declarations.Create) -> None:
    secret = None if options.secret is None else read_text(options.secret).strip()
    definition = define_address(
        options.conversation_id,
        schedule=options.schedule,
        signal=options.signal,
        signed=options.signed,
        secret=secret,
    )
    environment = await find_environment()
    settings, stack = environment.settings, environment.stack_info
    made = await (await _connect(settings)).create(definition)
    site = settings.gateway or settings.gateway_url or (stack.gateway if stack else None)
    url = f"{(site or '').rstrip('/')}{made.path}"
    shown = [made.secret] if made.secret and secret is None else []  # its sender has a given one
    show_result({**_fields(made), "url": url}, options.output, url, *shown)
    if options.output == "text":
        note(" ".join(_explain(made.id, bool(shown), bool(site))))


def _explain(address_id: str, has_secret: bool, has_site: bool) -> list[str]:
    """Return sentences on what a new address is printed as."""
    return [
        *(["The second line is the secret by which posts are signed."] if has_secret else []),
        f"Nothing shows it again; `perdure address revoke {address_id}` revokes it.",
        *([] if has_site else ["It is a path at your gateway, whose address is not set here."]),
    ]


async def list_addresses(options: declarations.List) -> None:
    settings = (await find_environment()).settings
    addresses = await (await _connect(settings)).list_addresses()
    with print_list(_fields, _show_line, options.output) as print_item:
        for address in addresses:
            print_item(address)
    if not addresses and options.output == "text":
        note("There are no addresses: `perdure address create` makes one.")


async def revoke(options: declarations.Revoke) -> None:
    settings = (await find_environment()).settings
    await (await _connect(settings)).revoke(options.id)
    show_result({"id": options.id, "revoked": True}, options.output, remark="It is revoked.")


async def _connect(settings: Settings) -> AddressClient:
    """Connect to the addresses of the user, of the gateway if one is set."""
    if settings.gateway is not None:
        from perdure.client.webhooks.http_webhooks import HttpAddresses

        return HttpAddresses(await connect_gateway(settings))
    from perdure.client.webhooks.addresses import Addresses  # slow

    return Addresses(await connect_servers(settings))


def _fields(address: Address) -> dict[str, Any]:
    return address.model_dump(mode="json", exclude_none=True)


def _show_line(address: Address) -> None:
    leads_to = address.conversation_id or f"schedule {address.schedule}"
    how = [f"signal {address.signal}"] if address.signal else []
    how += ["signed"] if address.signed else []
    created = f"{address.created[:19].replace('T', ' ')} UTC"
    show(f"{address.id}  {leads_to:<36}  {created}  {', '.join(how)}".rstrip())

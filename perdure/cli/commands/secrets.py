"""The commands of the secrets that a user hands in."""

import asyncio
import sys
from getpass import getpass

from perdure.api.secrets import Secret
from perdure.cli.declarations import secrets as declarations
from perdure.cli.environment import connect_client, find_servers
from perdure.cli.output import note, print_list, show, show_result
from perdure.client.store import open_configured_store
from perdure.errors import Invalid
from perdure.secrets.registry import MAX_SECRET_BYTES
from perdure.secrets.vault import Vault, build_key_ring, check_name
from perdure.storage.keys import USERS
from perdure.storage.store import list_folders
from perdure.wording import count


async def set_secret(options: declarations.SetSecret) -> None:
    name = check_name(options.name)
    client = await connect_client()
    value = await asyncio.to_thread(_ask_value, name)
    await client.put_secret(name, value, options.description)
    remark = f"{name} is kept. Name it for an agent: `perdure run ... --secret {name}`."
    fields = {"name": name, "description": options.description}
    show_result(fields, options.output, remark=remark)


def _ask_value(name: str) -> str:
    """Ask for a value without showing it, or read a pipe to its end. Raises Invalid."""
    if sys.stdin.isatty():
        try:
            return getpass(f"The value of {name}: ")
        except EOFError:
            raise Invalid(f"No value of {name} was typed.") from None
    raw = sys.stdin.buffer.read(MAX_SECRET_BYTES + 3)  # with a newline, and one byte too many
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Invalid(f"The value of {name} is no text in UTF-8.", "Encode it in base64.") from None
    return text.removesuffix("\n").removesuffix("\r")


async def list_secrets(options: declarations.ListSecrets) -> None:
    client = await connect_client()
    secrets = await client.list_secrets()
    with print_list(Secret.model_dump, _show_secret, options.output) as print_secret:
        for secret in secrets:
            print_secret(secret)
    if not secrets:
        note("You have handed in no secrets: `perdure secret set NAME`.")


def _show_secret(secret: Secret) -> None:
    show(f"{secret.name:<32}  {secret.updated}  {secret.description}".rstrip())


async def remove_secret(options: declarations.RemoveSecret) -> None:
    client = await connect_client()
    await client.remove_secret(check_name(options.name))
    remark = f"{options.name} is removed: no later command has it."
    show_result({"name": options.name, "removed": True}, options.output, remark=remark)


async def reencrypt(options: declarations.Reencrypt) -> None:
    settings = (await find_servers()).settings
    store, ring = open_configured_store(settings), build_key_ring(settings.secret_keys)
    users = await list_folders(store, USERS) if options.every else [settings.user]
    vaults = [Vault(store, user, ring) for user in users]
    done = sum([await vault.reencrypt() for vault in vaults])
    first = ring.first if ring is not None else ""
    fields = {"reencrypted": done, "key": first}
    remark = f"{count(done, 'secret')} encrypted anew; all are under the key {first!r} now."
    show_result(fields, options.output, remark=remark)

"""The command that becomes a gateway, and those about its keys."""

import os
import sys
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

from perdure.api.keys import Key, Scope
from perdure.cli.commands.worker import STORE_VARIABLE
from perdure.cli.declarations import gateway as declarations
from perdure.cli.environment import find_servers
from perdure.cli.moments import parse_moment
from perdure.cli.output import note, print_list, show, show_result
from perdure.client.store import open_configured_store
from perdure.embedded.record import StackInfo, open_stack_store
from perdure.embedded.worker_command import GATEWAY_COMMAND
from perdure.errors import Invalid, MissingExtra, NotFound
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import (
    create_api_key,
    find_api_key,
    list_api_keys,
    revoke_api_key,
)
from perdure.storage.credentials.tokens import create_token
from perdure.storage.keys import check_user_id
from perdure.storage.store import Store

LOGIN_LIFETIME = timedelta(minutes=10)
STACK_LOGIN_LIFETIME = timedelta(hours=12)
"""How long the address that `perdure dev` prints can be used, once."""

ALL_SCOPES: tuple[Scope, ...] = ("read", "write", "admin")


async def gateway(options: declarations.Gateway) -> None:
    if not can_serve_gateway():
        raise MissingExtra("The gateway", "gateway")
    if not os.environ.get(STORE_VARIABLE):
        await find_servers()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    address = ("--host", options.host, "--port", str(options.port))
    command = (*GATEWAY_COMMAND, *address, "--grace", str(options.grace))
    os.execv(command[0], command)


def can_serve_gateway() -> bool:
    """Tell whether the libraries of a gateway are installed."""
    return all(find_spec(name) for name in ("fastapi", "jwt", "sse_starlette", "websockets"))


async def make_login(info: StackInfo, settings: Settings) -> str | None:
    """Make an address of a stack's gateway that logs a browser in, once; None without a gateway."""
    if info.gateway is None:
        return None
    store = open_stack_store(info)
    try:
        return await _make_address(
            store, settings.user, info.gateway, ALL_SCOPES, STACK_LOGIN_LIFETIME
        )
    finally:
        await store.close()


async def _make_address(
    store: Store, user_id: str, url: str, scopes: tuple[Scope, ...], lifetime: timedelta
) -> str:
    code = await create_token(store, "login", user_id, scopes, lifetime)
    # No server and no log sees what stands behind the number sign.
    return f"{url.rstrip('/')}/#login={code}"


async def create_key(options: declarations.CreateKey) -> None:
    store, user = await _open_store(options)
    now = datetime.now(UTC)
    expires_in = None
    if options.expires is not None:
        end = datetime.fromisoformat(parse_moment(options.expires, now)).replace(tzinfo=UTC)
        expires_in = (end - now).total_seconds()
    scopes = _parse_scopes(options.scope or ["read", "write"])
    made = await create_api_key(store, user, options.name, scopes, expires_in)
    fields = {**_describe(made.key), "secret": made.secret}
    remark = f"The key of {user}, shown this once. `perdure key revoke {made.key.id}` ends it."
    show_result(fields, options.output, made.secret, remark=remark)


def _parse_scopes(words: list[str]) -> tuple[Scope, ...]:
    """Raises Invalid."""
    if unknown := [word for word in words if word not in ALL_SCOPES]:
        raise Invalid(f"There is no scope {unknown[0]!r}.", f"Use {', '.join(ALL_SCOPES)}.")
    return tuple(scope for scope in ALL_SCOPES if scope in words)


async def list_keys(options: declarations.ListKeys) -> None:
    store, user = await _open_store(options)
    keys = await list_api_keys(store, user)
    with print_list(_describe, _show_key, options.output) as print_key:
        for key in keys:
            print_key(key)
    if not keys:
        note(f"{user} has no keys: make one with `perdure key create NAME`.")


async def revoke_key(options: declarations.RevokeKey) -> None:
    store, user = await _open_store(options)
    if await find_api_key(store, user, options.key_id) is None:
        raise NotFound(f"{user} has no key {options.key_id}.", "`perdure key ls` lists them.")
    await revoke_api_key(store, options.key_id)
    remark = "The key is revoked: every gateway refuses it within seconds."
    show_result({"id": options.key_id, "revoked": True}, options.output, remark=remark)


async def log_in(options: declarations.LogIn) -> None:
    environment = await find_servers()
    info = environment.stack_info
    url = environment.settings.gateway_url or (info.gateway if info else None)
    if url is None:
        raise Invalid(
            "The address of the gateway is not known.",
            "Set PERDURE_GATEWAY_URL to the one by which browsers reach it.",
        )
    store, user = await _open_store(options)
    scopes = ("read",) if options.read_only else ALL_SCOPES
    address = await _make_address(store, user, url, scopes, LOGIN_LIFETIME)
    show_result({"login": address}, options.output, address, remark="It works once.")


async def _open_store(options: declarations.KeyOptions) -> tuple[Store, str]:
    """Open the store; return it and the user of the options. Raises Invalid."""
    settings = (await find_servers()).settings
    user = options.user or settings.user
    try:
        check_user_id(user)
    except ValueError as error:
        raise Invalid(str(error)) from error
    return open_configured_store(settings), user


def _describe(key: Key) -> dict[str, Any]:
    return key.model_dump(mode="json")


def _show_key(key: Key) -> None:
    state = "revoked" if key.revoked else f"until {key.expires}" if key.expires else "no end"
    used = f"last used {key.last_used}" if key.last_used else "never used"
    show(f"{key.id}  {','.join(key.scopes):<16}  {state}; {used}  {key.name}")

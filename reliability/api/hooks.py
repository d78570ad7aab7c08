"""What Schemathesis does besides, in its own environment: it imports this module as its hooks.

Ids that it makes up lead nowhere, so that most of them are replaced by those of two users. A
check says that no answer has a word which only the things of the other user have.
"""

import json
import os
import re
from pathlib import Path
from typing import Any
from zlib import crc32

import schemathesis

USERS: list[dict[str, Any]] = json.loads(Path(os.environ["PERDURE_CANARY_USERS"]).read_text())

OWN_KEY_IDS = {user["key"].split("_")[1] for user in USERS}
"""The keys that the requests are sent with: what revokes one makes all others fail."""

TRUE = ("true", "1", "on", "t", "y", "yes")
"""What the gateway reads as true."""

MAX_ASK_WAIT = 600
"""Seconds for which a request may wait for the answer to a question."""

LONGEST_WAIT = 60
"""Seconds for which the gateway lets a request wait for the end of a turn."""

ANYTHING = re.compile(".*", re.DOTALL)
PATTERNS = {
    "conversation_id": re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    "key_id": re.compile("[0-9a-f]{16}"),
    "memory_id": re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    "name": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"),
    "session_id": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
    "sha256": re.compile("[0-9a-f]{64}"),
    "user_id": re.compile(r"[A-Za-z0-9._@-]{1,128}"),
}
"""What the schema asks of each; what it refuses stays as it was made up."""

NAMES = {
    "agents": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
    "schedules": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
    "secrets": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}"),
}
"""The same for names of what has a rule of its own."""

SHAREABLE = ("/v1/conversations", "/v1/batches", "/v1/discussions")

RARELY = 40
"""One in so many requests that end something is for what a user had from the start."""


def choose(seed: Any, values: list[str], made_up: Any, often: int = 4) -> Any:
    """Return one of the values for `often` of 5 seeds, and what was made up for the others."""
    number = crc32(str(seed).encode())
    return values[number // 5 % len(values)] if number % 5 < often else made_up


def all_of(name: str) -> list[str]:
    return [value for user in USERS for value in user[name]]


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    if not path_parameters:
        return path_parameters
    operation = context.operation
    ends = operation.method.lower() == "delete" or operation.path.endswith("/close")
    seed = sorted(map(str, path_parameters.values()))
    known = {
        "conversation_id": all_of("conversations"),
        "session_id": all_of("discussions"),
        "memory_id": all_of("memories"),
        "name": all_of(operation.path.split("/")[2]) if "{name}" in operation.path else [],
        "key_id": all_of("keys"),
        "path": ["plan.txt"],
        "sha256": [user["blob"] for user in USERS],
        "user_id": ["carl"],  # nobody of the two is ever granted what is the other's
    }
    if ends and crc32(f"end {seed}".encode()) % RARELY:
        return path_parameters
    own = {"name": NAMES.get(operation.path.split("/")[2], PATTERNS["name"])}
    patterns = {**PATTERNS, **own}
    return {
        name: choose([name, *seed], known[name], value)
        if name in known and patterns.get(name, ANYTHING).fullmatch(str(value))
        else value  # made to be refused
        for name, value in path_parameters.items()
    }


def name_owner(query: dict[str, Any], name: str, users: list[str]) -> None:
    if not PATTERNS["user_id"].fullmatch(str(query.get(name, users[0]))):
        return  # it was made to be refused
    owner = choose(f"{name} {query}", users, None, often=3)
    if owner is not None:
        query[name] = owner


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_query(context: Any, query: dict[str, Any]) -> dict[str, Any]:
    path = context.operation.path
    query = dict(query or {})
    users = [user["user_id"] for user in USERS]
    if path.endswith("/comparison"):
        query["other"] = choose(query, all_of("batches"), query.get("other"))
        name_owner(query, "other_owner", users)
    if "/{" in path and path.startswith(SHAREABLE):
        name_owner(query, "owner", users)
    return query


def replace_canaries(value: Any) -> Any:
    """Replace the words of users in JSON: Schemathesis sends one what it has read as the other."""
    if isinstance(value, str):
        for user in USERS:
            value = value.replace(user["canary"], "canary")
        return value
    if isinstance(value, list):
        return [replace_canaries(item) for item in value]
    if isinstance(value, dict):
        return {replace_canaries(key): replace_canaries(item) for key, item in value.items()}
    return value


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:  # noqa: ARG001
    """Wait for nothing that is not there yet, and revoke no key that requests are sent with.

    A stream that is followed does not end. A key's id may also come from an answer before.
    """
    case.path_parameters = replace_canaries(case.path_parameters)
    case.query, case.body = replace_canaries(case.query), replace_canaries(case.body)
    if (case.path_parameters or {}).get("key_id") in OWN_KEY_IDS:
        case.path_parameters = {**case.path_parameters, "key_id": "0" * 16}
    query = dict(case.query or {})
    if case.operation.path.endswith("/turn"):
        query["wait"] = shorten(query.get("wait", 0))
    elif case.operation.path.endswith("/stream"):
        follows = str(query.get("follow", "true")).lower() in TRUE
        query["follow"] = "false" if follows else query["follow"]
    else:
        return
    case.query = query


def shorten(wait: Any) -> Any:
    """Return half a second for any longer wait that the gateway allows, else what is given."""
    try:
        seconds = float(wait)
    except (TypeError, ValueError):
        return wait
    return 0.5 if LONGEST_WAIT >= seconds > 0.5 else wait


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_body(context: Any, body: Any) -> Any:
    """Give an answer the time that it takes, and not minutes."""
    if context.operation.path.endswith("/ask") and isinstance(body, dict):
        wait: Any = body.get("max_wait")
        is_number = isinstance(wait, int | float) and not isinstance(wait, bool)
        if is_number and 0 < wait <= MAX_ASK_WAIT:
            return {**body, "max_wait": 10}
    return body


@schemathesis.check  # type: ignore[untyped-decorator]
def nothing_of_another_user(ctx: Any, response: Any, case: Any) -> None:  # noqa: ARG001
    """Check that an answer has no word of any user but the one whose key was sent."""
    sent = response.request.headers.get("Authorization", "")
    sent = sent.decode() if isinstance(sent, bytes) else sent
    shown = response.content.decode(errors="replace") + str(response.headers)
    for user in USERS:
        if user["key"] not in sent and user["canary"] in shown:
            raise AssertionError(f"The answer has a word of {user['user_id']}'s.")
        if user["key"] in shown:
            raise AssertionError(f"The answer has the key of {user['user_id']}.")

"""Keys, sessions and tickets where they do not belong, or that are none."""

from collections.abc import Iterator, Mapping

from tests.gateway.security.attacks.attack import Attack

QUERIES = ("key", "api_key", "access_token", "token", "authorization")

KEYS = {
    "with the id of another's": "pk_{annas_key_id}_{secret}",
    "cut off": "{key_start}",
    "that goes on": "{key}A",
    "in capitals": "{key_upper}",
    "with a path": "pk_../{key_id}_{secret}",
    "without a secret": "pk_{key_id}_",
    "of 30 kB": "{key}" * 500,
    "twice": "{key} {key}",
    "that is a ticket": "{used_ticket}",
    "that is a session": "{session}",
    "that is empty": "",
}


def attacks() -> Iterator[Attack]:
    yield _ask("no key", {})
    for name in QUERIES:
        yield _ask(f"a key in the address, as {name}", {}, f"?{name}={{key}}")
    yield _ask("a ticket that is no socket's", {}, "?ticket={used_ticket}")
    yield _ask("a key as a session", {"Cookie": "{cookie_name}={key}"})
    yield _ask("a ticket as a session", {"Cookie": "{cookie_name}={used_ticket}"})
    yield _ask("a session with a path", {"Cookie": "{cookie_name}=../{session}"})
    for name, key in KEYS.items():
        yield _ask(f"a key {name}", {"Authorization": f"Bearer {key}"})
    for scheme in ("Basic", "Digest", "Key", "bearer{key}"):
        yield _ask(f"the scheme {scheme}", {"Authorization": f"{scheme} {{key}}"})
    yield _ask("a key and no scheme", {"Authorization": "{key}"})
    yield Attack(
        "two keys in two headers",
        "/v1/me",
        headers={"Authorization": "Bearer x"},
        replaced=("Bearer x", "Bearer x\r\nAuthorization: Bearer {key}"),
        statuses=(400, 401),
    )


def _ask(name: str, headers: Mapping[str, str], query: str = "") -> Attack:
    return Attack(name, f"/v1/me{query}", headers=headers, statuses=(400, 401))

"""Keys that encrypt the secrets which users of the tests hand in."""

import base64

from pydantic import SecretStr

from perdure.secrets.vault import build_key_ring
from perdure.storage.credentials.key_ring import KeyRing


def key_setting(*names: str) -> str:
    """Return a setting with a key for each name; the same name has the same key."""
    return ",".join(
        f"{name}:{base64.b64encode(name.encode().ljust(32, b'.')).decode()}" for name in names
    )


def key_ring(*names: str) -> KeyRing:
    ring = build_key_ring(SecretStr(key_setting(*names)))
    assert ring is not None
    return ring

"""What is given to Temporal to keep, encrypted: AES-256-GCM, under keys that can be rotated."""

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from client.errors import Invalid

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"

KEY = 32
"""Bytes of a key: AES-256."""

NONCE = 12
"""Bytes of a nonce, drawn at random for each payload; source: NIST SP 800-38D, 8.2.2."""

SETTING = "PERDURE_PAYLOAD_KEYS"

MAKE = "Make a key with `openssl rand -base64 32`, and set PERDURE_PAYLOAD_KEYS to `ID:KEY`."


class Unreadable(Invalid):
    """A payload that cannot be decrypted here; tried again, it may meet a worker that has the key.

    Its text names the key and no more, so that it may be told in clear.
    """


class Encryption(PayloadCodec):
    """Encrypts with the first of the keys, and decrypts what any of them has encrypted.

    What is not encrypted is read as it is: a history may have begun before there was a key.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self.key_ids = tuple(keys)
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypted(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises Unreadable."""
        return [
            self._decrypted(payload) if payload.metadata.get("encoding") == ENCODING else payload
            for payload in payloads
        ]

    def _encrypted(self, payload: Payload) -> Payload:
        key_id, nonce = self.key_ids[0], os.urandom(NONCE)
        data = self._ciphers[key_id].encrypt(nonce, payload.SerializeToString(), _bound(key_id))
        return Payload(metadata={"encoding": ENCODING, KEY_ID: key_id.encode()}, data=nonce + data)

    def _decrypted(self, payload: Payload) -> Payload:
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            have = ", ".join(map(repr, self.key_ids))
            raise Unreadable(
                f"A payload in Temporal is encrypted with the key {key_id!r}, and {SETTING} has "
                f"only {have}: add that key behind them."
            )
        nonce, data = payload.data[:NONCE], payload.data[NONCE:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, data, _bound(key_id)))
        except (InvalidTag, ValueError):  # ValueError: there is not even a whole nonce
            raise Unreadable(
                f"A payload in Temporal cannot be decrypted with the key {key_id!r}: {SETTING} has "
                "another key under this id, or the payload was changed."
            ) from None


def encryption_of(setting: SecretStr | None) -> Encryption | None:
    """By the setting `payload_keys`; none where no key is set. Raises Invalid."""
    return None if setting is None else Encryption(keys_of(setting.get_secret_value()))


def keys_of(setting: str) -> dict[str, bytes]:
    """The keys by their ids, the one that encrypts first.

    `setting` is `ID:KEY[,ID:KEY ...]`, each key 32 bytes in base64, or the path of a file of such.
    Raises Invalid, which never quotes a key.
    """
    listed = setting if ":" in setting else _read(Path(setting))
    keys: dict[str, bytes] = {}
    for one in re.split(r"[,\s]+", listed.strip()):
        key_id, _, text = one.partition(":")
        if not re.fullmatch(r"[\w.-]{1,64}", key_id, re.ASCII) or key_id in keys:
            place = len(keys) + 1
            raise Invalid(f"Key {place} of {SETTING} needs an id of its own: ID:KEY.", MAKE)
        keys[key_id] = _key(key_id, text)
    return keys


def _bound(key_id: str) -> bytes:
    """What is authenticated with the data: neither its encoding nor its key can be exchanged."""
    return ENCODING + b" " + key_id.encode()


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no such home
        # The path is not told: it may be a key that somebody forgot to give an id.
        raise Invalid(f"{SETTING} is neither ID:KEY nor a file that can be read.", MAKE) from error


def _key(key_id: str, text: str) -> bytes:
    try:
        key = base64.b64decode(
            text, altchars=b"-_" if {"-", "_"} & set(text) else None, validate=True
        )
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY:
        raise Invalid(f"The key {key_id!r} of {SETTING} is not {KEY} bytes in base64.", MAKE)
    return key

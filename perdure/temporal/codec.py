"""Encryption of Temporal payloads: AES-256-GCM under keys that can be rotated."""

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from perdure.errors import Invalid

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"

KEY_BYTES = 32
"""Length of a key of AES-256."""

NONCE_BYTES = 12
"""Length of a nonce, random for each payload (NIST SP 800-38D, 8.2.2)."""

SETTING = "PERDURE_PAYLOAD_KEYS"

KEY_HINT = "Make a key with `openssl rand -base64 32`, and set PERDURE_PAYLOAD_KEYS to `ID:KEY`."


class Unreadable(Invalid):
    """A payload cannot be decrypted here; a retry may reach a worker that has the key.

    The text names only the key's id, so that it may travel unencrypted.
    """


class Encryption(PayloadCodec):
    """A codec that encrypts with the first key, and decrypts with any of the keys.

    Unencrypted payloads pass, as a history may have begun before there was a key.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        # Slow to load, and needed with keys alone.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.key_ids = tuple(keys)
        self._failures = (InvalidTag, ValueError)  # ValueError: there is no whole nonce
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypt(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt the payloads. Raises Unreadable."""
        return [self._decrypt(payload) for payload in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        key_id, nonce = self.key_ids[0], os.urandom(NONCE_BYTES)
        plain, cipher = payload.SerializeToString(), self._ciphers[key_id]
        data = cipher.encrypt(nonce, plain, _associated_data(key_id))
        return Payload(metadata={"encoding": ENCODING, KEY_ID: key_id.encode()}, data=nonce + data)

    def _decrypt(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            known = ", ".join(map(repr, self.key_ids))
            raise Unreadable(
                f"A payload in Temporal is encrypted with the key {key_id!r}, and {SETTING} has "
                f"only {known}: add that key behind them."
            )
        nonce, data = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, data, _associated_data(key_id)))
        except self._failures:
            raise Unreadable(
                f"A payload in Temporal cannot be decrypted with the key {key_id!r}: {SETTING} has "
                "another key under this id, or the payload was changed."
            ) from None


def build_encryption(setting: SecretStr | None) -> Encryption | None:
    """Build the codec of the setting `payload_keys`, None if it is unset. Raises Invalid."""
    return None if setting is None else Encryption(parse_keys(setting.get_secret_value()))


def parse_keys(setting: str) -> dict[str, bytes]:
    """Parse keys by id; the first one encrypts.

    `setting` is `ID:KEY[,ID:KEY ...]`, each key 32 bytes in base64, or a file with
    that. Raises Invalid, which never quotes a key.
    """
    text = setting if ":" in setting else _read_key_file(Path(setting))
    keys: dict[str, bytes] = {}
    for entry in re.split(r"[,\s]+", text.strip()):
        key_id, _, key = entry.partition(":")
        if not re.fullmatch(r"[\w.-]{1,64}", key_id, re.ASCII) or key_id in keys:
            raise Invalid(
                f"Key {len(keys) + 1} of {SETTING} needs an id of its own: ID:KEY.", KEY_HINT
            )
        keys[key_id] = _parse_key(key_id, key)
    return keys


def _associated_data(key_id: str) -> bytes:
    """Return the associated data, so that neither encoding nor key can be exchanged."""
    return ENCODING + b" " + key_id.encode()


def _read_key_file(path: Path) -> str:
    try:
        return path.expanduser().read_text()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no such home
        # The error omits the path, which may be a key without an id.
        raise Invalid(
            f"{SETTING} is neither ID:KEY nor a file that can be read.", KEY_HINT
        ) from error


def _parse_key(key_id: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise Invalid(
            f"The key {key_id!r} of {SETTING} is not {KEY_BYTES} bytes in base64.", KEY_HINT
        )
    return key

"""A ring of keys for AES-256-GCM: the first key encrypts, all decrypt."""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from pathlib import Path

from perdure.errors import Invalid

KEY_BYTES = 32
"""Length of a key of AES-256."""

NONCE_BYTES = 12
"""Length of a nonce, random for each message (NIST SP 800-38D, 8.2.2)."""


class UnknownKey(Exception):
    """The ring has no key of this id, which is the text."""


class Undecryptable(Exception):
    """The ring has another key under this id, which is the text, or the data was changed."""


class KeyRing:
    """Keys by id, of which the first encrypts and each decrypts."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        # Slow to load, and needed with keys alone.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.key_ids = tuple(keys)
        self._failures = (InvalidTag, ValueError)  # ValueError: there is no whole nonce
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}

    @property
    def first(self) -> str:
        """The id of the key that encrypts."""
        return self.key_ids[0]

    def encrypt(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt with the first key; return the nonce and the ciphertext.

        `context` is authenticated with it, and must be the same when it is decrypted.
        """
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[self.first].encrypt(nonce, plain, context)

    def decrypt(self, key_id: str, data: bytes, context: bytes) -> bytes:
        """Decrypt what `encrypt` returned. Raises UnknownKey, Undecryptable."""
        if (cipher := self._ciphers.get(key_id)) is None:
            raise UnknownKey(key_id)
        try:
            return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], context)
        except self._failures:
            raise Undecryptable(key_id) from None


def parse_keys(text: str, setting: str) -> dict[str, bytes]:
    """Parse keys by id, in their order.

    `text` is `ID:KEY[,ID:KEY ...]`, each key 32 bytes in base64, or a file with that; `setting` is
    the variable that has it. Raises Invalid, which never quotes a key.
    """
    text = text if ":" in text else _read_key_file(Path(text), setting)
    keys: dict[str, bytes] = {}
    for entry in re.split(r"[,\s]+", text.strip()):
        key_id, _, key = entry.partition(":")
        if not re.fullmatch(r"[\w.-]{1,64}", key_id, re.ASCII) or key_id in keys:
            raise Invalid(
                f"Key {len(keys) + 1} of {setting} needs an id of its own: ID:KEY.",
                make_hint(setting),
            )
        keys[key_id] = _parse_key(key_id, key, setting)
    return keys


def make_hint(setting: str) -> str:
    return f"Make a key with `openssl rand -base64 32`, and set {setting} to `ID:KEY`."


def _read_key_file(path: Path, setting: str) -> str:
    try:
        return path.expanduser().read_text()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no such home
        # The error omits the path, which may be a key without an id.
        raise Invalid(
            f"{setting} is neither ID:KEY nor a file that can be read.", make_hint(setting)
        ) from error


def _parse_key(key_id: str, text: str, setting: str) -> bytes:
    try:
        key = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise Invalid(
            f"The key {key_id!r} of {setting} is not {KEY_BYTES} bytes in base64.",
            make_hint(setting),
        )
    return key

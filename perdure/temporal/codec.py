"""Encryption of Temporal payloads: AES-256-GCM under keys that can be rotated."""

from collections.abc import Mapping, Sequence

from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from perdure.errors import Invalid
from perdure.storage.credentials.key_ring import KeyRing, Undecryptable, UnknownKey
from perdure.storage.credentials.key_ring import parse_keys as parse_key_ring

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"

SETTING = "PERDURE_PAYLOAD_KEYS"


class Unreadable(Invalid):
    """A payload cannot be decrypted here; a retry may reach a worker that has the key.

    The text names only the key's id, so that it may travel unencrypted.
    """


class Encryption(PayloadCodec):
    """A codec that encrypts with the first key, and decrypts with any of the keys.

    Unencrypted payloads pass, as a history may have begun before there was a key.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._ring = KeyRing(keys)
        self.key_ids = self._ring.key_ids

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypt(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt the payloads. Raises Unreadable."""
        return [self._decrypt(payload) for payload in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        key_id = self._ring.first
        data = self._ring.encrypt(payload.SerializeToString(), _associated_data(key_id))
        return Payload(metadata={"encoding": ENCODING, KEY_ID: key_id.encode()}, data=data)

    def _decrypt(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")
        try:
            plain = self._ring.decrypt(key_id, payload.data, _associated_data(key_id))
            return Payload.FromString(plain)
        except UnknownKey:
            known = ", ".join(map(repr, self.key_ids))
            raise Unreadable(
                f"A payload in Temporal is encrypted with the key {key_id!r}, and {SETTING} has "
                f"only {known}: add that key behind them."
            ) from None
        except Undecryptable:
            raise Unreadable(
                f"A payload in Temporal cannot be decrypted with the key {key_id!r}: {SETTING} has "
                "another key under this id, or the payload was changed."
            ) from None


def build_encryption(setting: SecretStr | None) -> Encryption | None:
    """Build the codec of the setting `payload_keys`, None if it is unset. Raises Invalid."""
    return None if setting is None else Encryption(parse_keys(setting.get_secret_value()))


def parse_keys(setting: str) -> dict[str, bytes]:
    """Parse the keys of the setting, as `key_ring.parse_keys`. Raises Invalid."""
    return parse_key_ring(setting, SETTING)


def _associated_data(key_id: str) -> bytes:
    """Return the associated data, so that neither encoding nor key can be exchanged."""
    return ENCODING + b" " + key_id.encode()

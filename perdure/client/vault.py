"""The secrets that the user of a client hands in."""

from pydantic import SecretStr

from perdure.errors import Invalid
from perdure.secrets.vault import Vault, build_key_ring
from perdure.storage.store import Store


def open_vault(store: Store, user_id: str, secret_keys: SecretStr | None) -> Vault:
    """Open the secrets of a user. Raises Invalid for keys or a user id that are none."""
    try:
        return Vault(store, user_id, build_key_ring(secret_keys))
    except ValueError as error:
        raise Invalid(str(error)) from error

"""The secrets of a user on a worker: whose counts, and what is masked for whom."""

import pytest

from perdure.secrets.registry import Secrets, SecretUnavailable
from perdure.secrets.user_secrets import SecretsByUser
from perdure.secrets.vault import Vault
from tests.secrets.keys import key_ring, key_setting
from tests.storage.memory import MemoryStore

WORKERS = {"PERDURE_SECRET_SHARED": "the-workers-value", "PERDURE_SECRET_OWN": "only-the-workers"}
ANNAS = "the-value-of-anna"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def by_user(store: MemoryStore, *keys: str) -> SecretsByUser:
    ring = key_ring(*keys) if keys else None
    return SecretsByUser(Secrets(environment=WORKERS), store, ring)


async def put(store: MemoryStore, name: str, value: str, user_id: str = "anna") -> None:
    await Vault(store, user_id, key_ring("one")).put(name, value)


async def test_a_users_secret_comes_before_the_workers_of_the_same_name(store: MemoryStore) -> None:
    await put(store, "SHARED", ANNAS)
    secrets = by_user(store, "one")
    await secrets.of("anna").load()
    await secrets.of("ben").load()
    assert secrets.of("anna").value("SHARED") == ANNAS
    assert secrets.of("anna").value("OWN") == "only-the-workers"
    assert secrets.of("ben").value("SHARED") == "the-workers-value"
    lent = secrets.of("anna").lend(["SHARED"])
    assert lent.values_named_in("echo $SHARED $OWN") == {"SHARED": ANNAS}


async def test_a_name_that_was_a_users_never_stands_for_the_workers_secret(
    store: MemoryStore,
) -> None:
    await put(store, "SHARED", ANNAS)
    await Vault(store, "anna", None).remove("SHARED")
    for secrets in (by_user(store, "one"), by_user(store)):
        await secrets.of("anna").load()
        with pytest.raises(SecretUnavailable, match="was removed by its user"):
            secrets.of("anna").value("SHARED")


async def test_a_worker_without_the_keys_lends_nothing_in_its_place(store: MemoryStore) -> None:
    await put(store, "SHARED", ANNAS)
    secrets = by_user(store)
    await secrets.of("anna").load()
    with pytest.raises(SecretUnavailable, match="PERDURE_SECRET_KEYS is not set here"):
        secrets.of("anna").value("SHARED")


async def test_a_value_is_masked_for_its_user_alone_and_in_the_workers_log(
    store: MemoryStore,
) -> None:
    await put(store, "TOKEN", ANNAS)
    secrets = by_user(store, "one")
    for user_id in ("anna", "ben"):
        await secrets.of(user_id).load()
    text = f"{ANNAS} and the-workers-value"
    assert secrets.of("anna").mask(text) == "<secret:TOKEN> and <secret:SHARED>"
    assert secrets.of("ben").mask(text) == f"{ANNAS} and <secret:SHARED>"
    assert secrets.everyone.mask(text) == "<secret:TOKEN> and <secret:SHARED>"
    assert secrets.of("anna").names_in(ANNAS.encode()) == {"TOKEN"}
    assert secrets.of("ben").names_in(ANNAS.encode()) == set()


async def test_a_value_of_before_stays_masked(store: MemoryStore) -> None:
    secrets = by_user(store, "one")
    for value in (ANNAS, "another-value"):
        await put(store, "TOKEN", value)
        await secrets.of("anna").load()
    assert secrets.of("anna").mask(f"{ANNAS} another-value") == "<secret:TOKEN> <secret:TOKEN>"
    assert secrets.of("anna").value("TOKEN") == "another-value"


async def test_values_are_read_again_when_they_are_old(store: MemoryStore) -> None:
    secrets = by_user(store, "one").of("anna")
    await secrets.load()
    await put(store, "TOKEN", ANNAS)
    await secrets.load(max_age=60)
    assert secrets.mask(ANNAS) == ANNAS
    await secrets.load()
    assert secrets.mask(ANNAS) == "<secret:TOKEN>"


def test_the_key_ring_itself_is_masked_and_lent_to_nobody() -> None:
    keys = key_setting("one")
    secrets = Secrets(environment={"PERDURE_SECRET_KEYS": keys})
    assert secrets.mask(f"with {keys}") == "with <secret:PERDURE_SECRET_KEYS>"
    with pytest.raises(SecretUnavailable):
        secrets.value("KEYS")

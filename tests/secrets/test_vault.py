"""The secrets that users hand in, on a store."""

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Invalid, NotFound
from perdure.secrets.vault import UserSecret, Vault, check_name
from perdure.storage.errors import StoreUnavailable
from tests.secrets.keys import key_ring
from tests.storage.memory import MemoryStore

VALUE = "ghp_0123456789abcdef"


def vault(store: MemoryStore, *keys: str, user_id: str = "anna") -> Vault:
    return Vault(store, user_id, key_ring(*keys) if keys else None)


async def load(opened: Vault) -> dict[str, UserSecret]:
    return {secret.name: secret for secret in await opened.load()}


class ForgetfulStore(MemoryStore):
    """A store whose answer to a write is lost: its own retry finds the key taken."""

    async def create(self, key: str, body: bytes) -> bool:
        await super().create(key, body)
        return False


async def test_a_secret_comes_back_and_stands_nowhere_in_clear() -> None:
    store = MemoryStore()
    await vault(store, "one").put("TOKEN", VALUE, "reads tickets")
    secret = (await load(vault(store, "one")))["TOKEN"]
    assert (secret.value, secret.description) == (VALUE, "reads tickets")
    [listed] = await vault(store, "one").list_secrets()
    assert (listed.name, listed.description) == ("TOKEN", "reads tickets")
    assert VALUE.encode() not in b"".join(store.objects.values())
    assert VALUE not in repr(secret) + repr(listed)


async def test_another_value_takes_the_place_of_the_first_one_which_is_deleted() -> None:
    store = MemoryStore()
    await vault(store, "one").put("TOKEN", VALUE)
    await vault(store, "one").put("TOKEN", "another-value")
    assert (await load(vault(store, "one")))["TOKEN"].value == "another-value"
    assert list(store.objects) == ["users/anna/secrets/TOKEN/000002.json"]


async def test_what_is_put_at_the_same_time_is_put_one_after_another() -> None:
    store = MemoryStore()
    values = [f"value-number-{n}" for n in range(20)]
    await asyncio.gather(*(vault(store, "one").put("TOKEN", value) for value in values))
    assert (await load(vault(store, "one")))["TOKEN"].value in values
    assert list(store.objects) == ["users/anna/secrets/TOKEN/000020.json"]


async def test_a_write_whose_answer_was_lost_is_not_written_twice() -> None:
    store = ForgetfulStore()
    await vault(store, "one").put("TOKEN", VALUE)
    assert list(store.objects) == ["users/anna/secrets/TOKEN/000001.json"]


async def test_a_secret_that_was_removed_leaves_its_name_and_no_value() -> None:
    store = MemoryStore()
    await vault(store, "one").put("TOKEN", VALUE)
    await vault(store).remove("TOKEN")
    assert await vault(store, "one").list_secrets() == []
    gone = (await load(vault(store, "one")))["TOKEN"]
    assert (gone.value, gone.fault) == (
        None,
        "The secret TOKEN of the user anna was removed by its user: it may be set again.",
    )
    with pytest.raises(NotFound, match="no secret 'TOKEN'"):
        await vault(store, "one").remove("TOKEN")
    await vault(store, "one").put("TOKEN", VALUE)
    assert (await load(vault(store, "one")))["TOKEN"].value == VALUE


async def test_without_keys_nothing_is_kept() -> None:
    store = MemoryStore()
    with pytest.raises(Invalid, match="PERDURE_SECRET_KEYS is not set") as refused:
        await vault(store).put("TOKEN", VALUE)
    assert "openssl rand -base64 32" in refused.value.hint
    assert store.objects == {}


async def test_after_a_rotation_the_first_key_encrypts_and_all_decrypt() -> None:
    store = MemoryStore()
    await vault(store, "old").put("FIRST", VALUE, "the first")
    both = vault(store, "new", "old")
    await both.put("SECOND", VALUE)
    assert {name: it.value for name, it in (await load(both)).items()} == {
        "FIRST": VALUE,
        "SECOND": VALUE,
    }
    only_new = await load(vault(store, "new"))
    assert only_new["SECOND"].value == VALUE
    assert "is encrypted with the key 'old': add it behind" in only_new["FIRST"].fault
    before = {it.name: it for it in await both.list_secrets()}
    assert await both.reencrypt() == 1
    assert await both.reencrypt() == 0
    after = await load(vault(store, "new"))
    assert (after["FIRST"].value, after["FIRST"].description) == (VALUE, "the first")
    assert {it.name: it for it in await both.list_secrets()} == before


async def test_what_is_put_during_a_reencryption_stays() -> None:
    class Interrupted(MemoryStore):
        """A store in which somebody puts another value just before the first write."""

        puts = False

        async def create(self, key: str, body: bytes) -> bool:
            if self.puts:
                self.puts = False
                await vault(self, "new").put("TOKEN", "a-newer-value")
            return await super().create(key, body)

    store = Interrupted()
    await vault(store, "old").put("TOKEN", VALUE)
    store.puts = True
    await vault(store, "new", "old").reencrypt()
    assert (await load(vault(store, "new")))["TOKEN"].value == "a-newer-value"


async def test_a_reencryption_without_the_key_says_which_is_missing() -> None:
    store = MemoryStore()
    await vault(store, "old").put("TOKEN", VALUE)
    with pytest.raises(Invalid, match="the key 'old': add it behind those of PERDURE_SECRET_KEYS"):
        await vault(store, "new").reencrypt()


async def test_no_value_can_be_moved_to_another_user_or_another_name() -> None:
    store = MemoryStore()
    await vault(store, "one").put("TOKEN", VALUE)
    body = store.objects["users/anna/secrets/TOKEN/000001.json"]
    store.objects["users/ben/secrets/TOKEN/000001.json"] = body
    store.objects["users/anna/secrets/OTHER/000001.json"] = body
    moved = (await load(vault(store, "one", user_id="ben")))["TOKEN"]
    renamed = (await load(vault(store, "one")))["OTHER"]
    for secret in (moved, renamed):
        assert secret.value is None
        assert "cannot be decrypted with the key 'one'" in secret.fault


async def test_nobody_has_the_secrets_of_another_user() -> None:
    store = MemoryStore()
    await vault(store, "one").put("TOKEN", VALUE)
    bens = vault(store, "one", user_id="ben")
    assert (await bens.list_secrets(), await bens.load()) == ([], [])
    with pytest.raises(NotFound):
        await bens.remove("TOKEN")


async def test_a_damaged_secret_harms_no_other() -> None:
    store = MemoryStore()
    for name in ("BAD", "GOOD"):
        await vault(store, "one").put(name, VALUE)
    store.objects["users/anna/secrets/BAD/000001.json"] = b"{"
    loaded = await load(vault(store, "one"))
    assert loaded["GOOD"].value == VALUE
    assert "BAD of the user anna is damaged on the store: set it again." in loaded["BAD"].fault
    await vault(store, "one").put("BAD", VALUE)
    assert (await load(vault(store, "one")))["BAD"].value == VALUE


@pytest.mark.parametrize(
    ("value", "description", "reason"),
    [
        ("short", "", "not a text of 8 to 65,536 bytes"),
        ("x" * 65_537, "", "not a text of 8 to 65,536 bytes"),
        ("with a \0 in it", "", "without NULs"),
        ("half a pair: \ud800", "", "not a text of"),
        (VALUE, f"it is {VALUE}", "has its value"),
        (VALUE, "two\nlines", "is not one line"),
        (VALUE, "x" * 501, "is not one line"),
    ],
)
async def test_what_could_not_be_kept_secret_is_refused(
    value: str, description: str, reason: str
) -> None:
    store = MemoryStore()
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        await vault(store, "one").put("TOKEN", value, description)
    assert len(value) < 8 or value not in str(refused.value)
    assert store.objects == {}


async def test_a_user_has_two_hundred_secrets_at_most() -> None:
    store = MemoryStore()
    for n in range(200):
        store.objects[f"users/anna/secrets/NAME_{n}/000001.json"] = json.dumps(
            {"updated": "2026-01-01T00:00:00+00:00", "key_id": "one", "data": "AAAA"}
        ).encode()
    with pytest.raises(Invalid, match="200 secrets at most"):
        await vault(store, "one").put("TOKEN", VALUE)
    await vault(store, "one").put("NAME_7", VALUE)


async def test_the_errors_of_a_store_are_its_own() -> None:
    class Down(MemoryStore):
        async def list(self, *_: object) -> list[str]:
            raise StoreUnavailable("it is down")

    with pytest.raises(StoreUnavailable):
        await vault(Down(), "one").load()


@given(st.text(max_size=200))
def test_a_name_is_a_variables_and_what_is_none_is_not_repeated(name: str) -> None:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name, re.ASCII):
        assert check_name(name) == name
        return
    with pytest.raises(Invalid) as refused:
        check_name(name)
    assert str(refused.value) == "This is no name of a secret."

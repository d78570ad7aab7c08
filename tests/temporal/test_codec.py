"""Encryption of payloads with one key, several keys and none."""

import base64
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.inbox import UserMessage
from perdure.errors import Invalid
from perdure.temporal.codec import Encryption, Unreadable, parse_keys
from perdure.temporal.converter import CONVERTER, HIDDEN_MESSAGE, build_converter

KEYS = {name: bytes([at]) * 32 for at, name in enumerate(("old", "new", "other"))}
OLD, NEW = (Encryption({name: KEYS[name]}) for name in ("old", "new"))
BOTH = Encryption({name: KEYS[name] for name in ("new", "old")})

PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"rosebud"')


def key_setting(*names: str) -> str:
    return ",".join(f"{name}:{base64.b64encode(KEYS[name]).decode()}" for name in names)


async def test_a_payload_survives_encryption_which_never_repeats_itself() -> None:
    first, second = await OLD.encode([PLAIN, PLAIN])
    assert first.data != second.data
    assert b"rosebud" not in first.SerializeToString() + second.SerializeToString()
    assert first.metadata == {"encoding": b"binary/encrypted", "encryption-key-id": b"old"}
    assert await OLD.decode([first, second]) == [PLAIN, PLAIN]


async def test_after_a_rotation_the_first_key_encrypts_and_all_decrypt() -> None:
    [before] = await OLD.encode([PLAIN])
    [after] = await BOTH.encode([PLAIN])
    assert after.metadata["encryption-key-id"] == b"new"
    assert await BOTH.decode([before, after, PLAIN]) == [PLAIN, PLAIN, PLAIN]
    assert await NEW.decode([after]) == [PLAIN]
    with pytest.raises(Unreadable, match=r"with the key 'old', and .* only 'new': add that key"):
        await NEW.decode([before])


@pytest.mark.parametrize("at", [0, 12, -1], ids=["nonce", "data", "tag"])
async def test_an_altered_payload_is_refused(at: int) -> None:
    [sealed] = await OLD.encode([PLAIN])
    data = bytearray(sealed.data)
    data[at] ^= 1
    sealed.data = bytes(data)
    with pytest.raises(Unreadable, match=r"another key under this id, or the payload was changed"):
        await OLD.decode([sealed])


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 27])
async def test_a_payload_that_is_no_ciphertext_is_refused(data: bytes) -> None:
    [sealed] = await OLD.encode([PLAIN])
    sealed.data = data
    with pytest.raises(Unreadable, match="cannot be decrypted with the key 'old'"):
        await OLD.decode([sealed])


async def test_a_key_cannot_pass_for_another() -> None:
    [sealed] = await OLD.encode([PLAIN])
    sealed.metadata["encryption-key-id"] = b"renamed"
    same_key = Encryption({"renamed": KEYS["old"]})
    with pytest.raises(Unreadable, match="cannot be decrypted with the key 'renamed'"):
        await same_key.decode([sealed])
    with pytest.raises(Unreadable, match="cannot be decrypted with the key 'old'"):
        await Encryption({"old": KEYS["other"]}).decode(await OLD.encode([PLAIN]))


async def test_a_program_without_keys_gets_an_error_that_names_the_key() -> None:
    sealed = await build_converter(OLD).encode([UserMessage(text="rosebud")])
    with pytest.raises(
        Unreadable, match="with the key 'old', and no key is set here: set PERDURE_"
    ):
        await CONVERTER.decode(sealed, [UserMessage])


async def test_an_unencrypted_payload_is_read_with_a_key() -> None:
    plain = await CONVERTER.encode([UserMessage(text="rosebud")])
    assert b"rosebud" in plain[0].data
    assert await build_converter(OLD).decode(plain, [UserMessage]) == [UserMessage(text="rosebud")]


def test_without_a_key_there_is_no_codec() -> None:
    assert CONVERTER.payload_codec is None


def failure_of() -> BaseException:
    """An error with a cause, as a step raises it."""
    try:
        try:
            raise ValueError("the inner rosebud")
        except ValueError as error:
            raise ApplicationError("the outer rosebud", "a detail", type="Sad") from error
    except ApplicationError as error:
        return error


async def test_the_texts_of_a_failure_and_its_causes_are_encrypted() -> None:
    converter, failure = build_converter(OLD), Failure()
    await converter.encode_failure(failure_of(), failure)
    body = failure.SerializeToString()
    assert (failure.message, failure.cause.message) == (HIDDEN_MESSAGE, HIDDEN_MESSAGE)
    assert not [word for word in (b"rosebud", b"detail", b"test_codec") if word in body]
    back = await converter.decode_failure(failure)
    assert isinstance(back, ApplicationError)
    assert (back.message, back.details, back.type) == ("the outer rosebud", ("a detail",), "Sad")
    assert "the inner rosebud" in str(back.__cause__)


async def test_a_cause_that_came_in_clear_is_encrypted_when_it_is_passed_on() -> None:
    failure, passed_on = Failure(), Failure()
    await CONVERTER.encode_failure(failure_of(), failure)
    assert b"inner rosebud" in failure.SerializeToString()
    converter = build_converter(OLD)
    await converter.encode_failure(await converter.decode_failure(failure), passed_on)
    assert b"rosebud" not in passed_on.SerializeToString()
    assert "inner" in str((await converter.decode_failure(passed_on)).__cause__)


async def test_a_long_failure_is_shortened_and_not_lost() -> None:
    converter, failure = build_converter(OLD), Failure()
    await converter.encode_failure(ApplicationError("\0" * 1_000_000), failure)
    assert "\0\0" in str(await converter.decode_failure(failure))


async def test_a_decryption_error_is_not_encrypted() -> None:
    failure = Failure()
    with pytest.raises(Unreadable) as caught:
        await NEW.decode(await OLD.encode([PLAIN]))
    await build_converter(NEW).encode_failure(caught.value, failure)
    assert "encrypted with the key 'old'" in failure.message


def test_keys_are_listed_or_are_in_a_file(tmp_path: Path) -> None:
    wanted = {name: KEYS[name] for name in ("new", "old")}
    path = tmp_path / "keys"
    path.write_text(key_setting("new", "old").replace(",", "\n") + "\n")
    assert list(parse_keys(key_setting("new", "old")).items()) == list(wanted.items())
    assert list(parse_keys(str(path)).items()) == list(wanted.items())
    urlsafe = base64.urlsafe_b64encode(b"\xfb" * 32).decode()
    assert parse_keys(f"a:{urlsafe}") == {"a": b"\xfb" * 32}


SECRET = base64.b64encode(KEYS["old"]).decode()


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        (SECRET, "is neither ID:KEY nor a file that can be read"),
        ("", "is neither ID:KEY nor a file that can be read"),
        (f":{SECRET}", "Key 1 of PERDURE_PAYLOAD_KEYS needs an id of its own"),
        (f"a:{SECRET},a:{SECRET}", "Key 2 of PERDURE_PAYLOAD_KEYS needs an id of its own"),
        (f"a:{SECRET},", "Key 2 of PERDURE_PAYLOAD_KEYS needs an id of its own"),
        (f"a:{SECRET[:-4]}", "The key 'a' of PERDURE_PAYLOAD_KEYS is not 32 bytes in base64"),
        (f"a:{SECRET}!", "The key 'a' of PERDURE_PAYLOAD_KEYS is not 32 bytes in base64"),
        ("a:é", "The key 'a' of PERDURE_PAYLOAD_KEYS is not 32 bytes in base64"),
    ],
)
def test_invalid_keys_are_refused_and_not_quoted(setting: str, fault: str) -> None:
    with pytest.raises(Invalid, match=fault) as refused:
        parse_keys(setting)
    assert SECRET[:-4] not in f"{refused.value} {refused.value.hint}"
    assert "openssl rand -base64 32" in refused.value.hint

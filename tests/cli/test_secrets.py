"""`perdure secret`: the commands by which a user hands secrets in."""

from uuid import uuid4

import pytest

from tests.cli.command import Perdure
from tests.secrets.keys import key_setting

VALUE = "ghp_typed-into-a-pipe-0123"


@pytest.fixture
def keyed(configured: Perdure) -> Perdure:
    user = f"user-{uuid4()}"
    return configured.with_env(PERDURE_SECRET_KEYS=key_setting("one"), PERDURE_USER=user)


@pytest.mark.long
async def test_a_secret_is_set_from_a_pipe_listed_and_removed(keyed: Perdure) -> None:
    described = ("--description", "reads the tickets")
    done = await keyed("secret", "set", "TICKETS", *described, stdin=f"{VALUE}\n")
    assert (done.code, done.out) == (0, ""), done.err
    listed = await keyed("secret", "ls", "-o", "json")
    assert [(it["name"], it["description"]) for it in listed.json] == [
        ("TICKETS", "reads the tickets")
    ]
    rotated = keyed.with_env(PERDURE_SECRET_KEYS=key_setting("two", "one"))
    again = await rotated("secret", "reencrypt", "-o", "json")
    assert again.json == {"reencrypted": 1, "key": "two"}
    removed = await keyed("secret", "rm", "TICKETS")
    assert (removed.code, "TICKETS is removed" in removed.err) == (0, True)
    assert (await keyed("secret", "ls", "-o", "json")).json == []
    assert VALUE not in done.err + listed.out + again.out


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "reason"),
    [
        (("set", "TICKETS"), "short", 2, "not a text of 8 to 65,536 bytes"),
        (("set", "TICKETS"), "", 2, "not a text of 8 to 65,536 bytes"),
        (("set", "not a name"), VALUE, 2, "This is no name of a secret."),
        (("set", "TICKETS", VALUE), VALUE, 2, "unexpected extra argument"),
        (("rm", "TICKETS"), "", 3, "There is no secret 'TICKETS'"),
    ],
)
async def test_what_is_no_secret_is_refused_with_a_sentence(
    keyed: Perdure, arguments: tuple[str, ...], stdin: str, code: int, reason: str
) -> None:
    refused = await keyed("secret", *arguments, stdin=stdin)
    assert (refused.code, reason in refused.err) == (code, True), refused.err


@pytest.mark.long
async def test_without_keys_the_setting_is_named(configured: Perdure) -> None:
    refused = await configured("secret", "set", "TICKETS", stdin=VALUE)
    assert refused.code == 2
    assert "PERDURE_SECRET_KEYS is not set" in refused.err
    assert "openssl rand -base64 32" in refused.err

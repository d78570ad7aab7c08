"""`perdure webhook`, as people type it."""

from uuid import uuid4

import pytest

from tests.cli.command import Perdure
from tests.secrets.keys import key_setting

pytestmark = pytest.mark.long

URL = "https://8.8.8.8/hooks"

OWN_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@pytest.fixture
def perdure(configured: Perdure) -> Perdure:
    """The command of a user of their own, with Temporal, a store, and keys for secrets."""
    return configured.with_env(
        PERDURE_USER=f"user-{uuid4()}", PERDURE_SECRET_KEYS=key_setting("first")
    )


async def test_a_webhook_is_created_shown_tested_rotated_and_deleted(perdure: Perdure) -> None:
    made = await perdure("webhook", "create", URL, "--on", "turn_end, error")
    assert made.code == 0, made.err
    name, secret = made.out.splitlines()
    assert secret.startswith("whsec_")
    assert f"perdure webhook test {name}" in made.err
    assert f"{name}  turn_end,error" in (await perdure("webhook", "ls")).out
    assert (await perdure("webhook", "test", name)).code == 0
    shown = await perdure("webhook", "show", name, "-o", "json")
    assert (shown.json["url"], shown.json["events"]) == (URL, ["turn_end", "error"])
    assert secret not in shown.out
    text = (await perdure("webhook", "show", name)).out
    assert text.startswith(f"{name}: active\nposts turn_end, error of all conversations\n")
    rotated = await perdure("webhook", "rotate", name)
    assert rotated.out.startswith("whsec_")
    assert rotated.out.strip() != secret
    assert (await perdure("webhook", "delete", name)).code == 0
    absent = await perdure("webhook", "show", name)
    assert (absent.code, "There is no webhook" in absent.err) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("create", "http://127.0.0.1:9/x"), 2, "has a private address, to which no webhook may"),
        (("create", "https://[::1]/x"), 2, "PERDURE_WEBHOOK_NETWORKS"),
        (("create", "nowhere"), 2, "is no URL of http or https"),
        (("create", URL, "--on", "turn_ends"), 2, "Use some of turn_end, question, approval"),
        (("create", URL, "--conversation", "mine"), 2, "conversation_id: "),
        (("create", URL, "--conversation", str(uuid4())), 3, "There is no conversation"),
        (("show", "absent"), 3, "There is no webhook 'absent'"),
        (("delete", "0" * 16), 3, "There is no webhook"),
    ],
)
async def test_what_is_no_webhook_is_refused_with_a_sentence(
    perdure: Perdure, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    refused = await perdure("webhook", *arguments)
    assert (refused.code, sentence in refused.err) == (code, True), refused.err


async def test_without_keys_for_secrets_no_webhook_is_kept(configured: Perdure) -> None:
    refused = await configured("webhook", "create", URL)
    assert (refused.code, "PERDURE_SECRET_KEYS is not set" in refused.err) == (2, True)


async def test_an_address_is_created_listed_and_revoked(perdure: Perdure) -> None:
    begun = await perdure("run", "Go.", "--detach", "--model", "scripted:hello.json", "-o", "json")
    name = begun.json["conversation_id"]
    at_gateway = perdure.with_env(PERDURE_GATEWAY_URL="https://perdure.example.org/")
    made = await at_gateway("address", "create", name)
    assert made.code == 0, made.err
    start, address, secret = made.out.strip().rsplit("/", 2)
    assert start == "https://perdure.example.org/v1/posts"
    assert f"perdure address revoke {address}" in made.err
    listed = await perdure("address", "ls")
    assert listed.out.startswith(f"{address}  {name}  ")
    assert secret not in listed.out
    signed = await at_gateway("address", "create", name, "--signal", "paid", "--signed")
    assert signed.out.splitlines()[1].startswith("whsec_")
    assert "The second line is the secret" in signed.err
    own = await at_gateway("address", "create", name, "--secret", "-", stdin=f"{OWN_SECRET}\n")
    assert (own.code, len(own.out.splitlines())) == (0, 1), own.err
    lines = (await perdure("address", "ls")).out.splitlines()
    assert lines[1].endswith("UTC  signal paid, signed")
    assert lines[2].endswith("UTC  signed")
    assert (await perdure("address", "revoke", address)).code == 0
    absent = (("revoke", "absent"), ("create", str(uuid4())), ("create", "--schedule", "absent"))
    for arguments in (("revoke", address), *absent):
        refused = await perdure("address", *arguments)
        assert (refused.code, "There is no " in refused.err) == (3, True), refused.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "an address is that of a conversation, or that of a schedule"),
        ((str(uuid4()), "--schedule", "a"), "or that of a schedule"),
        (("--schedule", "a", "--signal", "paid"), "a schedule takes no signals"),
        ((str(uuid4()), "--signal", "so paid"), "no name of a signal"),
        ((str(uuid4()), "--secret", "whsec_short"), "24 to 64 bytes in base64"),
    ],
)
async def test_what_is_no_address_is_refused_with_a_sentence(
    perdure: Perdure, arguments: tuple[str, ...], sentence: str
) -> None:
    refused = await perdure("address", "create", *arguments)
    assert (refused.code, sentence in refused.err) == (2, True), refused.err

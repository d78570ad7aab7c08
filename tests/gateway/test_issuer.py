"""Tokens of an issuer: which are taken, and which are forged."""

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from perdure.errors import Unreachable
from perdure.gateway.identity.issuer import Issuer
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from tests.gateway.issuer import AUDIENCE, TestIssuer, serve_issuer
from tests.gateway.stage import open_gateway
from tests.harness import ConversationHarness


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    async with serve_issuer() as served:
        served.add_rsa_key("first")
        yield served


def settings(issuer: TestIssuer, **more: Any) -> Settings:
    return Settings(gateway_issuer=issuer.url, gateway_audience=AUDIENCE, **more)


async def test_a_token_says_who_asks_and_what_he_may_do(issuer: TestIssuer) -> None:
    verifier = Issuer(settings(issuer))
    principal = await verifier.authenticate(issuer.token())
    assert principal is not None
    assert principal.user_id == "anna"
    assert principal.scopes == {"read", "write"}
    assert principal.credential == "token"
    assert principal.expires is not None
    listed = await verifier.authenticate(issuer.token(scope=["perdure:admin", "admin", 5]))
    assert listed is not None
    assert listed.scopes == {"admin"}
    issuer.add_ec_key("curve")
    verifier = Issuer(settings(issuer))
    assert await verifier.authenticate(issuer.token("curve", "ES256")) is not None
    assert issuer.fetches == 2


def encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def forgeries(issuer: TestIssuer) -> dict[str, str]:
    """Return tokens that must not be taken, by what is wrong with them."""
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    good = issuer.token()
    public = issuer.keys["first"].public_key()
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = {"alg": "HS256", "kid": "first"}
    body = f"{encode(head)}.{encode(issuer.claims())}"
    mac = hmac_sha256(pem, body.encode())
    return {
        "expired": issuer.token(exp=time.time() - 60),
        "not yet valid": issuer.token(nbf=time.time() + 600),
        "without an end": issuer.token(exp=None),
        "for somebody else": issuer.token(aud="other"),
        "for nobody": issuer.token(aud=None),
        "of another issuer": issuer.token(iss="https://elsewhere.example"),
        "of no issuer": issuer.token(iss=None),
        "signed by another key": issuer.token(key=other),
        "signed with a key of no known name": issuer.token("first", key=other).replace("a", "b", 1),
        "unsigned": f"{encode({'alg': 'none', 'kid': 'first'})}.{encode(issuer.claims())}.",
        "unsigned, in capitals": f"{encode({'alg': 'NONE'})}.{encode(issuer.claims())}.",
        "signed with the public key as a secret": f"{body}.{mac}",
        "with an algorithm that is not allowed": issuer.token(algorithm="RS512"),
        "with other claims": f"{good.split('.')[0]}.{encode(issuer.claims(sub='ben'))}."
        f"{good.split('.')[2]}",
        "with a key of its own": encode({"alg": "RS256", "jwk": issuer.public_jwk("first")})
        + f".{encode(issuer.claims())}.{good.split('.')[2]}",
        "for a user who is none": issuer.token(sub="../ben"),
        "for a user who is a number": issuer.token(sub=None, user=5),
        "for an empty user": issuer.token(sub=""),
        "cut off": good[:-10],
        "of two parts": ".".join(good.split(".")[:2]),
        "of no JSON": "abc.def.ghi",
    }


def hmac_sha256(key: bytes, text: bytes) -> str:
    digest = hmac.new(key, text, "sha256").digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


async def test_forged_tokens_are_refused(issuer: TestIssuer) -> None:
    secret = base64.urlsafe_b64encode(b"secret" * 8).decode().rstrip("=")
    issuer.extra.append({"kty": "oct", "kid": "shared", "k": secret})
    verifier = Issuer(settings(issuer))
    assert await verifier.authenticate(issuer.token()) is not None
    taken = [
        name
        for name, text in forgeries(issuer).items()
        if await verifier.authenticate(text) is not None
    ]
    assert taken == []


@pytest.mark.long
async def test_the_gateway_refuses_forged_tokens_and_takes_a_good_one(
    world: ConversationHarness, issuer: TestIssuer
) -> None:
    more: dict[str, Any] = {"gateway_issuer": issuer.url, "gateway_audience": AUDIENCE}
    async with open_gateway(world, **more) as stage:
        for name, text in list(forgeries(issuer).items())[:12]:
            refused = await stage.client_with(text).get("/v1/me")
            assert refused.status_code == 401, name
        me = (await stage.client_with(issuer.token(sub="eve")).get("/v1/me")).json()
        assert me == {"user_id": "eve", "scopes": ["read", "write"], "key_id": None}
        bare = issuer.token(scope=None)
        assert (await stage.client_with(bare).get("/v1/conversations")).status_code == 403


async def test_keys_are_fetched_again_for_a_new_name_but_not_often(issuer: TestIssuer) -> None:
    clock = [1000.0]
    verifier = Issuer(settings(issuer), lambda: clock[0])
    assert await verifier.authenticate(issuer.token()) is not None
    issuer.add_rsa_key("second")
    for _ in range(5):
        assert await verifier.authenticate(issuer.token("second")) is None
    assert issuer.fetches == 1
    clock[0] += 60
    assert await verifier.authenticate(issuer.token("second")) is not None
    assert issuer.fetches == 2
    for kid in ("third", "fourth"):
        assert await verifier.authenticate(issuer.token(kid, key=issuer.keys["first"])) is None
    assert issuer.fetches == 2
    clock[0] += 600
    assert await verifier.authenticate(issuer.token()) is not None
    assert issuer.fetches == 3


async def test_known_keys_stay_while_the_issuer_does_not_answer() -> None:
    clock = [1000.0]
    async with serve_issuer() as issuer:
        issuer.add_rsa_key("first")
        verifier = Issuer(settings(issuer), lambda: clock[0])
        late = Issuer(settings(issuer), lambda: clock[0])
        assert await verifier.authenticate(issuer.token()) is not None
    clock[0] += 3600
    assert await verifier.authenticate(issuer.token()) is not None
    with pytest.raises(Unreachable, match="issuer"):
        await late.authenticate(issuer.token())


@pytest.mark.parametrize(
    "fields",
    [
        {"gateway_issuer": "https://issuer.example"},
        {"gateway_issuer": "http://issuer.example", "gateway_audience": "perdure"},
        {"gateway_issuer": "file:///etc", "gateway_audience": "perdure"},
        {
            "gateway_issuer": "https://issuer.example",
            "gateway_audience": "perdure",
            "gateway_jwks": "http://issuer.example/keys",
        },
    ],
)
def test_an_issuer_that_is_not_safe_is_refused_at_the_start(fields: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        Issuer(Settings(**fields))


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS128"])
def test_an_algorithm_without_a_public_key_is_no_setting(algorithm: str) -> None:
    with pytest.raises(SettingsError, match="gateway_algorithms"):
        Settings(gateway_algorithms=(algorithm,))


def test_an_address_with_a_password_is_refused_without_a_word_of_it() -> None:
    url = "https://client:canary-4711@login.example.org/keys"
    with pytest.raises(SettingsError, match="no password") as refused:
        Issuer(Settings(gateway_issuer=url, gateway_audience=AUDIENCE))
    assert "canary" not in str(refused.value)

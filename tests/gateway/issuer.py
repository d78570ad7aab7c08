"""An issuer of tokens on a port of this machine, with keys of its own."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.testing.server import serve_app

AUDIENCE = "perdure"


@dataclass
class TestIssuer:
    """An issuer that publishes `keys`; `fetches` counts how often they were asked for."""

    __test__ = False

    url: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    extra: list[dict[str, Any]] = field(default_factory=list)
    fetches: int = 0

    def add_rsa_key(self, kid: str) -> Any:
        self.keys[kid] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self.keys[kid]

    def add_ec_key(self, kid: str) -> Any:
        self.keys[kid] = ec.generate_private_key(ec.SECP256R1())
        return self.keys[kid]

    def public_jwk(self, kid: str) -> dict[str, Any]:
        key = self.keys[kid]
        kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        return {**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "use": "sig"}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good token; a change to None leaves one out."""
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "anna",
            "exp": time.time() + 300,
            "scope": "openid perdure:read perdure:write",
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, kid: str = "first", algorithm: str = "RS256", key: Any = None, **changes: Any
    ) -> str:
        """Sign a token."""
        signer = self.keys[kid] if key is None else key
        return jwt.encode(self.claims(**changes), signer, algorithm, {"kid": kid})


@asynccontextmanager
async def serve_issuer() -> AsyncIterator[TestIssuer]:
    """Serve an issuer while inside."""
    issuer = TestIssuer()

    async def configuration(_: Request) -> JSONResponse:
        return JSONResponse({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"})

    async def keys(_: Request) -> JSONResponse:
        issuer.fetches += 1
        return JSONResponse({"keys": [*map(issuer.public_jwk, issuer.keys), *issuer.extra]})

    routes = [Route("/.well-known/openid-configuration", configuration), Route("/keys", keys)]
    async with serve_app(Starlette(routes=routes)) as url:
        issuer.url = url
        yield issuer

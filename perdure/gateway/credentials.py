"""The credential of a connection that lasts, checked as long as it does."""

from collections.abc import Hashable, Mapping

from perdure.errors import Forbidden
from perdure.gateway.callers import Caller
from perdure.gateway.following.permissions import Check


def credential_checks(caller: Caller) -> Mapping[Hashable, Check]:
    """Return the check that a credential still works: one for all connections that have it."""
    principal = caller.principal

    async def check() -> None:
        if not await caller.gateway.identities.is_valid(principal):
            raise Forbidden("The key of this connection is not valid any more.")

    return {(principal.key_id, principal.session, principal.expires): check}

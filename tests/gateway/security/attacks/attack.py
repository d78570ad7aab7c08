"""An attack on a gateway: what is sent, and all that may come back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.gateway.security.raw import build_request

REFUSED = (400, 401, 403, 404, 405, 413, 414, 421, 422, 431)

JSON = {"Content-Type": "application/json"}
BENS_KEY = {"Authorization": "Bearer {key}"}
ANNAS_SESSION = {"Cookie": "{cookie}"}


class Target(NamedTuple):
    """The values that an attack may name, in braces.

    Anna has a conversation, a batch and a key, each with a word that no answer may have. The
    attacker has a key of Ben's, and knows the ids. Anna's browser sends the cookie of her session
    along, which the attacker cannot read.
    """

    host: str
    """The name and the port of the gateway."""
    id: str
    """Of Anna's conversation."""
    key: str
    """Ben's."""
    batch: str = ""
    annas_key_id: str = ""
    cookie: str = ""
    cookie_name: str = ""
    key_start: str = ""
    """Ben's key without its last letter."""
    key_upper: str = ""
    key_id: str = ""
    secret: str = ""
    """The part of Ben's key behind its id."""
    session: str = ""
    """The secret of a session of Ben's."""
    used_ticket: str = ""
    expired_ticket: str = ""


@dataclass(frozen=True)
class Attack:
    """A row: a request, and the statuses of which its answer must have one.

    `parts` are sent in place of a request, or behind its head if it has a `path`.
    """

    name: str
    path: str = ""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: tuple[bytes, ...] = ()
    replaced: tuple[str, str] = ("", "")
    """A text of the head, and what is sent in its place."""
    statuses: tuple[int, ...] = REFUSED
    may_close: bool = False
    """Whether the gateway may also close the connection without an answer."""

    def build(self, target: Target) -> list[bytes]:
        """Return the parts to send."""
        if not self.path:
            return list(self.parts)
        names = target._asdict()
        given = {"Host": "{host}", **self.headers}
        headers = {name: text.format(**names) for name, text in given.items()}
        request = build_request(self.path.format(**names), self.method, headers, self.body)
        before, after = (text.format(**names).encode("latin-1") for text in self.replaced)
        return [request.replace(before, after, 1) if before else request, *self.parts]

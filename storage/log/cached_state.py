"""The cached state of a conversation, `base_state.json`.

Its first fields are a checksum over all bytes, in which it is empty, and the version of perdure
that wrote it. A state of an older version has neither.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import ValidationError

from perdure.agent.loop.state import FOLD_VERSION, State
from perdure.storage.keys import LAST_SEQ

_HEAD = re.compile(rb'\{"checksum":"([0-9a-f]{32})","version":"([^"\\]*)",')


@dataclass(frozen=True)
class CachedState:
    """A cached state; an empty one if it was lost or altered, or another version's fields differ.

    `version` is the perdure that wrote it, if it says so and its checksum holds.
    """

    state: State = field(default_factory=State)
    version: str = ""

    @property
    def is_own(self) -> bool:
        """Tell whether this version of perdure wrote it, and folded all of its events."""
        if not self.version or self.state.fold_version != FOLD_VERSION:
            return False
        return self.version == _perdure_version()


def encode_cached_state(state: State) -> bytes:
    """Encode the state for `EventLog.save_state`."""
    blank = b'{"checksum":"","version":"%b",%b' % (
        _perdure_version().encode(),
        state.model_dump_json().encode().removeprefix(b"{"),
    )
    return blank.replace(b'""', b'"%b"' % _checksum(blank), 1)


def parse_cached_state(body: bytes | None) -> CachedState:
    """Parse the cached state, of this version or of an older one."""
    body, version = body or b"", ""
    if head := _HEAD.match(body):
        if not _holds(head):
            return CachedState()
        body, version = b"{" + body[head.end() :], head[2].decode(errors="replace")
    try:
        state = State.model_validate_json(body)
    except ValidationError:
        return CachedState()
    if not 0 <= state.next_seq <= LAST_SEQ + 1:
        return CachedState()
    return CachedState(state, version)


def is_whole(body: bytes) -> bool:
    """Tell whether a cached state, of whatever version, is what somebody wrote."""
    if head := _HEAD.match(body):
        return _holds(head)
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "checksum" not in fields


def _holds(head: re.Match[bytes]) -> bool:
    return _checksum(head.string.replace(head[1], b"", 1)) == head[1]


def _checksum(blank: bytes) -> bytes:
    return hashlib.sha256(blank).hexdigest()[:32].encode()


@lru_cache(maxsize=1)
def _perdure_version() -> str:
    """Return the installed version; "" where perdure is not installed, and no state is its own."""
    from importlib.metadata import PackageNotFoundError, version  # slow, and lists do without

    with suppress(PackageNotFoundError):
        return version("perdure")
    return ""

"""Validators of HTTP caches (RFC 9110, 8.8): entity tags."""

import hashlib

from fastapi import Request


def make_etag(*parts: object) -> str:
    """Make the tag of an answer that follows from these parts alone."""
    text = "\0".join(map(repr, parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def matches_etag(request: Request, etag: str) -> bool:
    """Tell whether the client of a request has the answer with this tag."""
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or etag in (tag.removeprefix("W/") for tag in known)

"""Reports of browsers about what the policy of the page forbids: a line of the audit each.

A script that somebody got into the page is seen here. Anybody can send reports: they are small and
few, and of what they say only words of known shapes are written.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.gateway.callers import find_gateway, require_own_page
from perdure.gateway.edge.audit import audit
from perdure.gateway.errors import Refused

REPORTS_PATH = "/csp-report"

MEDIA_TYPES = ("application/csp-report", "application/reports+json")
"""The kinds of reports: one of `report-uri`, or a list of `report-to`."""

MAX_BYTES = 16 * 1024

MAX_WRITTEN = 5
"""Reports of one request that are written."""

WORD = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,100}", re.ASCII)
SCHEMES = ("http", "https", "ws", "wss")


async def _take(request: Request) -> Response:
    """Write what a browser reports. Raises Refused."""
    gateway, client = find_gateway(request), request.client
    gateway.rates.take("report", client.host if client else "")
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        require_own_page(gateway, request)
    if request.headers.get("content-type", "").partition(";")[0].strip() not in MEDIA_TYPES:
        raise _not_a_report()
    found = list(_list_violations(_parse(await _read(request))))
    if not found:
        raise _not_a_report()
    for violation in found[:MAX_WRITTEN]:
        audit(request, "page.violation", **_describe(violation))
    return Response(status_code=204)


REPORTS_ROUTE = Route(REPORTS_PATH, _take, methods=["POST"])


async def _read(request: Request) -> bytes:
    """Read the body. Raises Refused if it is too large, or does not come whole."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                raise Refused(413, "too_large", f"A report has at most {MAX_BYTES:,} bytes.")
    except ClientDisconnect as error:
        raise _not_a_report() from error
    return bytes(body)


def _parse(body: bytes) -> Any:
    """Parse a body. Raises Refused if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _not_a_report() from error


def _list_violations(reported: Any) -> Iterator[dict[str, Any]]:
    """Yield the violations of a report of either kind."""
    if isinstance(reported, dict) and isinstance(reported.get("csp-report"), dict):
        yield reported["csp-report"]
    for report in reported if isinstance(reported, list) else ():
        is_violation = isinstance(report, dict) and report.get("type") == "csp-violation"
        if is_violation and isinstance(report.get("body"), dict):
            yield report["body"]


def _describe(violation: dict[str, Any]) -> dict[str, object]:
    """Return what was forbidden, without any text of the report but words and names of hosts."""
    directive = violation.get("effectiveDirective", violation.get("effective-directive"))
    blocked = violation.get("blockedURL", violation.get("blocked-uri"))
    line = violation.get("lineNumber", violation.get("line-number"))
    return {
        "directive": _keep_word(directive or violation.get("violated-directive")),
        "blocked": _keep_word(blocked) or _keep_origin(blocked),
        "line": line if isinstance(line, int) and 0 <= line < 2**31 else None,
    }


def _keep_word(text: object) -> str | None:
    return text if isinstance(text, str) and WORD.fullmatch(text) else None


def _keep_origin(url: object) -> str | None:
    """Return the scheme and the host of an address, or the scheme alone where it is another one."""
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in SCHEMES:
        return _keep_word(parts.scheme)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if HOST.fullmatch(host) else parts.scheme


def _not_a_report() -> Refused:
    return Refused(
        422,
        "invalid",
        "The body is no report of what a browser has forbidden the page.",
        f"Send {' or '.join(MEDIA_TYPES)}.",
    )

"""The routes of the page, whose policy lets a browser talk to this host alone.

A browser keeps the files for good, as their addresses contain a digest of all of them; it asks for
`index.html`, which names the digest, each time.
"""

from collections.abc import Callable
from html import escape

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure.gateway.page.files import INDEX, PageFile, PageFiles, load_files
from perdure.gateway.page.violations import REPORTS_PATH

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types lit-html dompurify",
        f"report-uri {REPORTS_PATH}",
    )
)
"""Inline scripts and styles are forbidden, and so is HTML from any text but by the sanitizer. A
browser reports what it has forbidden."""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

SECURE_HEADERS = {
    "Content-Security-Policy": f"{CONTENT_SECURITY_POLICY}; report-to page",
    "Reporting-Endpoints": f'page="{REPORTS_PATH}"',
}
"""The headers under https. Browsers that know `report-to` pass over `report-uri`, and under plain
http they report nothing by it."""

FOREVER = "public, max-age=31536000, immutable"

VIEWS = (
    "/",
    "/new",
    "/conversations/{conversation_id}",
    "/batches",
    "/batches/{name}",
    "/discussions",
    "/discussions/{session_id}",
    "/schedules",
    "/webhooks",
    "/agents",
    "/memory",
    "/keys",
)
"""The addresses of the page; each of them is `index.html`."""


def page_routes(
    workflows_url: str | None = None, is_secure: Callable[[HTTPConnection], bool] = lambda _: False
) -> list[BaseRoute]:
    """Return the routes of the page.

    `workflows_url` is the address of the list of workflows in Temporal's UI, for links to the
    workflows of conversations; without one the page has no such links. `is_secure` tells whether
    a browser has asked by https.
    """
    files = load_files()
    index = _build_index(files, workflows_url)

    async def serve_index(request: Request) -> Response:
        response = _respond(request, index, "no-cache")
        if is_secure(request):
            response.headers.update(SECURE_HEADERS)
        return response

    async def serve_file(request: Request) -> Response:
        file = files.files.get(request.path_params["path"])
        if file is None or file.path == INDEX or request.path_params["digest"] != files.digest:
            return Response(status_code=404, headers={**HEADERS, "Cache-Control": "no-store"})
        return _respond(request, file, FOREVER)

    views: list[BaseRoute] = [Route(view, serve_index, methods=["GET"]) for view in VIEWS]
    return [*views, Route("/page/{digest}/{path:path}", serve_file, methods=["GET"])]


def _build_index(files: PageFiles, workflows_url: str | None) -> PageFile:
    """Fill the digest, and the address of Temporal's UI, into `index.html`."""
    text = files.files[INDEX].content.decode()
    filled = text.replace("{digest}", files.digest)
    filled = filled.replace("{workflows_url}", escape(workflows_url or "", quote=True))
    return PageFile(INDEX, filled.encode())


def _respond(request: Request, file: PageFile, cache_control: str) -> Response:
    headers = {**HEADERS, "ETag": file.etag, "Cache-Control": cache_control}
    headers["Vary"] = "Accept-Encoding"
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(file.gzipped, media_type=file.media_type, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)

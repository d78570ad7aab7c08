"""Pages of lists, by the id of the item that a page follows."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from perdure.gateway.openai.errors import BadRequest

MAX_LIMIT = 100


def list_page(request: Request, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the page of the items, the oldest first, that a query asks for.

    By default it has the newest 20, the newest first. Raises BadRequest.
    """
    query = request.query_params
    order, after = query.get("order", "desc"), query.get("after")
    if order not in ("asc", "desc"):
        raise BadRequest("`order` is `asc` or `desc`.", "order")
    ordered = list(items) if order == "asc" else list(reversed(items))
    begin = 0
    if after is not None:
        numbers = [number for number, item in enumerate(ordered) if item["id"] == after]
        if not numbers:
            raise BadRequest("`after` is the id of no item.", "after")
        begin = numbers[0] + 1
    end = begin + _parse_limit(query.get("limit", "20"))
    page = ordered[begin:end]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": end < len(ordered),
    }


def _parse_limit(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text[:9]) <= MAX_LIMIT):
        raise BadRequest(f"`limit` is 1 to {MAX_LIMIT}.", "limit")
    return int(text)

"""The conditions of a list of conversations, as its query states them."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Query

from perdure.agent.loop.status import Status
from perdure.gateway.views.listing import ListFilter


def _make_filter(
    status: Status | None = None,
    tag: Annotated[str | None, Query(max_length=256)] = None,
    text: Annotated[str | None, Query(max_length=256)] = None,
) -> ListFilter:
    return ListFilter(status, tag, text)


Wanted: TypeAlias = Annotated[ListFilter, Depends(_make_filter)]

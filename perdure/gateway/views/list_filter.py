"""The conditions of a list of conversations, as its query states them."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Query

from perdure.agent.loop.status import Status
from perdure.client.lists.lists import ListFilter


def _make_filter(
    status: Status | None = None,
    tag: Annotated[str | None, Query(max_length=256)] = None,
    text: Annotated[str | None, Query(max_length=256)] = None,
    app: Annotated[str | None, Query(max_length=255)] = None,
    agent: Annotated[str | None, Query(max_length=255)] = None,
    active: bool = False,
    hidden: bool = False,
) -> ListFilter:
    return ListFilter(status, tag, text, "", app, agent, active, hidden)


Wanted: TypeAlias = Annotated[ListFilter, Depends(_make_filter)]

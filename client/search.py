"""Whether Temporal knows our search attributes, and how it comes to know them."""

from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from agent.start import Start
from client.errors import Conflict, Unreachable
from workflows.operators import ATTRIBUTES, MODEL, STATUS, TAGS, USER


async def missing(temporal: Client) -> list[SearchAttributeKey[Any]]:
    """Those of our search attributes that the namespace has not got, or as another type.

    Raises Unreachable where it cannot be told.
    """
    request = ListSearchAttributesRequest(namespace=temporal.namespace)
    try:
        known = (await temporal.operator_service.list_search_attributes(request)).custom_attributes
    except RPCError as error:
        raise Unreachable(
            f"Temporal does not list its search attributes: {error.message}"
        ) from error
    return [key for key in ATTRIBUTES if known.get(key.name) != _value_type(key)]


async def register(temporal: Client) -> list[str]:
    """Register what is missing; the names of what was. Raises Conflict and Unreachable."""
    new = await missing(temporal)
    if not new:
        return []
    request = AddSearchAttributesRequest(
        namespace=temporal.namespace,
        search_attributes={key.name: _value_type(key) for key in new},
    )
    try:
        await temporal.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise _refused(temporal.namespace, new, error) from error
    return [key.name for key in new]


async def searchable(temporal: Client) -> bool:
    """Whether all of them can be used; a server that does not tell is taken to know none."""
    try:
        return not await missing(temporal)
    except Unreachable:
        return False


def begun(start: Start) -> TypedSearchAttributes | None:
    """What a conversation is found by before any worker has taken it up."""
    if not start.searchable:
        return None
    pairs: list[SearchAttributePair[Any]] = [SearchAttributePair(USER, start.user_id)]
    if start.spec is not None:
        pairs.append(SearchAttributePair(STATUS, "idle"))
        pairs.append(SearchAttributePair(MODEL, start.spec.model.name))
        pairs.append(SearchAttributePair(TAGS, list(start.spec.tags)))
    return TypedSearchAttributes(pairs)


def _value_type(key: SearchAttributeKey[Any]) -> IndexedValueType.ValueType:
    return IndexedValueType.ValueType(key.indexed_value_type)


def _refused(
    namespace: str, new: list[SearchAttributeKey[Any]], error: RPCError
) -> Conflict | Unreachable:
    names = ", ".join(key.name for key in new)
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return Unreachable(f"Temporal did not register {names}: {error.message}")
    return Conflict(
        f"Temporal does not let you register {names} in the namespace {namespace}: {error.message}",
        "Have an administrator of it run `perdure setup temporal`, or set "
        "PERDURE_SEARCH_ATTRIBUTES=off: nothing but searching in Temporal is lost.",
    )

"""Registering our search attributes with Temporal."""

from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.loop.start import Start
from perdure.errors import Conflict, Unreachable
from perdure.temporal.search_attributes import ATTRIBUTES, MODEL, STATUS, TAGS, USER


async def missing_attributes(temporal: Client) -> list[SearchAttributeKey[Any]]:
    """Return our search attributes that the namespace lacks, or has with another type.

    Raises Unreachable if the server does not list them.
    """
    request = ListSearchAttributesRequest(namespace=temporal.namespace)
    try:
        registered = (
            await temporal.operator_service.list_search_attributes(request)
        ).custom_attributes
    except RPCError as error:
        raise Unreachable(
            f"Temporal does not list its search attributes: {error.message}"
        ) from error
    return [key for key in ATTRIBUTES if registered.get(key.name) != _value_type(key)]


async def register_attributes(temporal: Client) -> list[str]:
    """Register the missing attributes, and return their names. Raises Conflict, Unreachable."""
    absent = await missing_attributes(temporal)
    if not absent:
        return []
    request = AddSearchAttributesRequest(
        namespace=temporal.namespace,
        search_attributes={key.name: _value_type(key) for key in absent},
    )
    try:
        await temporal.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise _registration_error(temporal.namespace, absent, error) from error
    return [key.name for key in absent]


async def has_attributes(temporal: Client) -> bool:
    """Tell whether all attributes are registered; False if the server does not list them."""
    try:
        return not await missing_attributes(temporal)
    except Unreachable:
        return False


def initial_attributes(start: Start) -> TypedSearchAttributes | None:
    """Return the search attributes of a conversation before a worker has taken it up."""
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


def _registration_error(
    namespace: str, absent: list[SearchAttributeKey[Any]], error: RPCError
) -> Conflict | Unreachable:
    names = ", ".join(key.name for key in absent)
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return Unreachable(f"Temporal did not register {names}: {error.message}")
    return Conflict(
        f"Temporal does not let you register {names} in the namespace {namespace}: {error.message}",
        "Have an administrator of it run `perdure setup temporal`, or set "
        "PERDURE_SEARCH_ATTRIBUTES=off: nothing but searching in Temporal is lost.",
    )

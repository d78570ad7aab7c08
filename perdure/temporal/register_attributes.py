"""Registering our search attributes with Temporal."""

from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice import v1 as requests
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.loop.start import Start
from perdure.errors import Conflict, Unreachable
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.search_attributes import ATTRIBUTES, MODEL, STATUS, TAGS, USER, Key


async def missing_attributes(temporal: Client) -> list[Key]:
    """Return our search attributes that the namespace lacks, or has with another type.

    Raises Unreachable if the server does not list them.
    """
    request = requests.ListSearchAttributesRequest(namespace=temporal.namespace)
    with translate_rpc_errors("does not list its search attributes"):
        answer = await temporal.operator_service.list_search_attributes(request)
    registered = answer.custom_attributes
    return [key for key in ATTRIBUTES if registered.get(key.name) != _value_type(key)]


async def register_attributes(temporal: Client) -> list[str]:
    """Register the missing attributes, and return their names. Raises Conflict, Unreachable."""
    absent = await missing_attributes(temporal)
    if not absent:
        return []
    request = requests.AddSearchAttributesRequest(namespace=temporal.namespace)
    request.search_attributes.update({key.name: _value_type(key) for key in absent})
    try:
        await temporal.operator_service.add_search_attributes(request)
    except RPCError as error:
        names = ", ".join(key.name for key in absent)
        if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
            raise Unreachable(f"Temporal did not register {names}: {error.message}") from error
        raise Conflict(
            f"Temporal does not let you register {names} in the namespace {temporal.namespace}: "
            f"{error.message}",
            "Have an administrator of it run `perdure setup temporal`, or set "
            "PERDURE_SEARCH_ATTRIBUTES=off: nothing but searching in Temporal is lost.",
        ) from error
    return [key.name for key in absent]


def initial_attributes(start: Start) -> TypedSearchAttributes | None:
    """Return the search attributes of a conversation before a worker has taken it up."""
    if not start.searchable:
        return None
    values: dict[Key, Any] = {USER: start.user_id}
    if (spec := start.spec) is not None:
        values |= {STATUS: "idle", MODEL: spec.model.name, TAGS: list(spec.tags)}
    return TypedSearchAttributes([SearchAttributePair(*pair) for pair in values.items()])


def _value_type(key: Key) -> IndexedValueType.ValueType:
    return IndexedValueType.ValueType(key.indexed_value_type)

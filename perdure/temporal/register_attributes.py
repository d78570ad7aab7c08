"""Registering our search attributes with Temporal."""

import math
from datetime import datetime
from time import monotonic

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice import v1 as requests
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State
from perdure.errors import Conflict, Unreachable
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.search_attributes import ATTRIBUTES, USER, Key, search_attributes

REFUSAL_SECONDS = 60.0
"""Seconds after which a server that did not list its search attributes is asked again."""


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


class AttributeCheck:
    """The check whether Temporal knows our search attributes; `known` is its result, if given."""

    def __init__(self, temporal: Client, known: bool | None = None) -> None:
        self._temporal = temporal
        self._known = known
        self._refused_at = -math.inf

    async def ask(self) -> bool:
        """Tell whether it knows them, as it said first; not if it does not list any just now."""
        if self._known is None and monotonic() - self._refused_at > REFUSAL_SECONDS:
            try:
                self._known = not await missing_attributes(self._temporal)
            except Unreachable:
                self._refused_at = monotonic()
        return bool(self._known)


def initial_attributes(start: Start, at: datetime) -> TypedSearchAttributes | None:
    """Return the search attributes of a conversation that starts at a time."""
    if not start.searchable:
        return None
    if start.spec is None:  # those of its last turn come from the log
        return TypedSearchAttributes([SearchAttributePair(USER, start.user_id)])
    state = State(status="running" if start.starts_running else "idle", spec=start.spec)
    updates = search_attributes(start.user_id, state, at)
    pairs = [SearchAttributePair(update.key, update.value) for update in updates]
    return TypedSearchAttributes(pairs)


def _value_type(key: Key) -> IndexedValueType.ValueType:
    return IndexedValueType.ValueType(key.indexed_value_type)

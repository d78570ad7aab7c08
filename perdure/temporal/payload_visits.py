"""The SDK's visits of payloads, which a worker leaves out where they can change none.

The SDK visits each payload of a workflow task three times when it comes and three times when it
goes: for a codec, for an external storage, and for references to one. Without either it does so as
well, and there is no setting against it. So the two functions are replaced, those of versions of
the SDK that are known here: with any other one nothing changes but the time. Why:
docs/decisions/2026-11-28-payload-visits.md.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import temporalio.bridge.worker
import temporalio.service
from temporalio.converter import DataConverter

KNOWN_VERSIONS = ("1.35.0",)
"""The versions of the SDK whose visits change nothing without a codec and an external storage."""

VISITS = ("decode_activation", "encode_completion")
"""The functions of `temporalio.bridge.worker` that visit the payloads of a workflow task."""

Metrics = TypeVar("Metrics")

Visit: TypeAlias = Callable[..., Awaitable[Metrics]]


def leave_out_visits(version: str = temporalio.service.__version__) -> None:
    """Replace the SDK's functions, unless they have been or `version` is none that is known."""
    if version not in KNOWN_VERSIONS:
        return
    from temporalio.converter._extstore import StorageOperationMetrics  # other versions lack it

    for name in VISITS:
        visit = getattr(temporalio.bridge.worker, name)
        if not hasattr(visit, "__wrapped__"):
            visit_if_needed = _visit_if_needed(visit, StorageOperationMetrics)
            setattr(temporalio.bridge.worker, name, visit_if_needed)


def _visit_if_needed(visit: Visit[Metrics], make_metrics: Callable[[], Metrics]) -> Visit[Metrics]:
    @functools.wraps(visit)
    async def visit_if_needed(
        message: Any, converter: DataConverter, *args: Any, **kwargs: Any
    ) -> Metrics:
        if converter.payload_codec is None and converter.external_storage is None:
            return make_metrics()
        return await visit(message, converter, *args, **kwargs)

    return visit_if_needed

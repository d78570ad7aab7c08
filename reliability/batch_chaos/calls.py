"""The audit of model calls: answered calls against recorded responses."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reliability.batch_chaos.model import Call, RequestId
from reliability.batch_chaos.worker_pool import Disruption


@dataclass(frozen=True)
class LostCall:
    """A call that came to nothing on record, and the blow that explains it; None: nothing does.

    `after` is how many seconds after the answer the blow came: below 0, it came before its end.
    """

    call: Call
    disruption: Disruption | None
    after: float = 0.0


@dataclass(frozen=True)
class CallAudit:
    """`answered` counts answers that were sent whole, `recorded` those on record.

    `twice` were sent whole and are not on record, `cut` were not sent whole. `made_up` are ids on
    record that no answer had; `odd` says what else does not add up. `charged` is how many a server
    charges for that knows a repeat by its key.
    """

    answered: int
    recorded: int
    repeated: tuple[LostCall, ...]
    cut: tuple[LostCall, ...]
    unknown_records: tuple[str, ...]
    unexpected: tuple[str, ...]
    charged: int = 0

    @property
    def unexplained(self) -> list[LostCall]:
        return [item for item in (*self.repeated, *self.cut) if item.disruption is None]


def audit_calls(
    calls: Sequence[Call],
    blows: Sequence[Disruption],
    recorded: Collection[str],
    due: Mapping[RequestId, int],
) -> CallAudit:
    """`recorded` are the ids of answers on record, `due` how often each is to be there."""
    by_asked: dict[RequestId, list[Call]] = defaultdict(list)
    for call in sorted(calls, key=lambda item: item.began):
        by_asked[call.request].append(call)
    recorded_ids = set(recorded)
    lost = [
        explain_loss(item, by_asked[item.request], blows)
        for item in calls
        if item.id not in recorded_ids
    ]
    paid = {item.id for item in calls if item.answered is not None}
    return CallAudit(
        answered=len(paid),
        recorded=len(recorded),
        repeated=tuple(item for item in lost if item.call.answered is not None),
        cut=tuple(item for item in lost if item.call.answered is None),
        unknown_records=tuple(sorted(recorded_ids - paid)),
        unexpected=(*find_unexpected(by_asked, recorded_ids, due), *check_keys(calls)),
        charged=len({item.key or item.id for item in calls if item.answered is not None}),
    )


def explain_loss(call: Call, same: Sequence[Call], blows: Sequence[Disruption]) -> LostCall:
    """A blow explains it that came after the call began, and before it was made once more.

    The last one of its kind was made beside another that is on record, by a worker that had been
    given up: that befell it before.
    """
    again = min((item.began for item in same if item.began > call.began), default=call.began)
    own = [item for item in blows if item.worker == call.worker]
    for blow in (*own, *(item for item in blows if not item.worker)):
        if blow.since <= again and blow.until >= call.began:
            return LostCall(call, blow, blow.since - (call.answered or call.began))
    return LostCall(call, None)


def check_keys(calls: Sequence[Call]) -> Iterator[str]:
    """Every call has the same key each time, and no other has it."""
    for mine, theirs in (("request", "key"), ("key", "request")):
        partners: dict[object, set[object]] = defaultdict(set)
        for call in calls:
            partners[getattr(call, mine)].add(getattr(call, theirs))
        yield from (
            f"{item} had more than one {theirs}: {sorted(map(str, others))}"
            for item, others in partners.items()
            if len(others) > 1 and item
        )


def find_unexpected(
    by_asked: Mapping[RequestId, Sequence[Call]],
    recorded_ids: set[str],
    due: Mapping[RequestId, int],
) -> Iterator[str]:
    for request in sorted({*by_asked, *due}):
        count = sum(call.id in recorded_ids for call in by_asked.get(request, ()))
        if count != due.get(request, 0):
            yield f"{request}: {count} answers are on record, and {due.get(request, 0)} have to be"

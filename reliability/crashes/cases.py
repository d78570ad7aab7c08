"""The crash cases of a conversation, listed from the points that its worker passes undisturbed."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reliability.crashes.points import HARMS, Harm, Point

MOST_ALIKE = 20
"""Cases of one kind of point of which a short run plays one."""

PROGRESS_INTERVAL = 100
"""Cases between two lines about how many have begun."""


@dataclass(frozen=True)
class Case:
    """The worker is lost at `point`; who takes over has its disk, or one `elsewhere`."""

    point: Point
    harm: Harm
    elsewhere: bool

    def __str__(self) -> str:
        return f"{self.harm} {self.point}" + (" (another disk)" if self.elsewhere else "")

    @property
    def is_model_call(self) -> bool:
        """Tell whether the worker is lost in a step that asks the model."""
        return self.point.step.startswith("llm.")


def list_cases(points: Sequence[Point]) -> Iterator[Case]:
    """Every harm at every point at which it can be done, and comes to something else than before.

    A worker that was killed is followed by turns by one with its disk and by one with another. One
    that stands still is a machine that does: nobody else has its disk.
    """
    distinct = list(distinct_points(points))
    for nth, point in enumerate(without_repeated_reads(distinct)):
        yield Case(point, "kill", elsewhere=nth % 2 == 1)
    for point in distinct:
        yield Case(point, "freeze", elsewhere=True)
    for point in distinct_requests(points):
        yield Case(point, "lose", elsewhere=False)


def choose_kinds(cases: Iterable[Case], chosen: set[str]) -> Iterator[Case]:
    """Yield a few cases of each kind of point that is not `chosen` yet: one of every twenty.

    Harms come by turns. No step and no request is left out, which every Nth case may do.
    """
    by_kind: dict[str, list[Case]] = {}
    for case in cases:
        by_kind.setdefault(case.point.kind, []).append(case)
    for turn, kind in enumerate(sorted(by_kind.keys() - chosen)):
        listed = by_kind[kind]
        turns = range(turn, turn + math.ceil(len(listed) / MOST_ALIKE))
        yield from dict.fromkeys(_pick(listed, it) for it in turns)
    chosen.update(by_kind)


def begin_cases(cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases, and say on stderr now and then how many of them have begun."""
    for nth, case in enumerate(cases, 1):
        if nth % PROGRESS_INTERVAL == 0:
            print(f"{nth} of {len(cases)} cases have begun", file=sys.stderr, flush=True)
        yield case


def _pick(cases: Sequence[Case], turn: int) -> Case:
    """Pick the case of a turn, of the harm whose turn it is if there is one."""
    harm = HARMS[turn % len(HARMS)]
    of_harm = [case for case in cases if case.harm == harm] or cases
    return of_harm[turn * len(of_harm) // 7 % len(of_harm)]


def distinct_points(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points that are moments of their own.

    A call's beginning straight behind the end of another is the same moment; not so in a tool's
    step, which leaves something on the disk in between, unless both only read. Of reads side by
    side the first beginning and the last end count.
    """
    neighbours = zip((None, *points), points, (*points[1:], None), strict=False)
    for last, point, following in neighbours:
        if last is not None and _is_same_moment(last, point):
            continue
        if following is not None and _are_ends_side_by_side(point, following):
            continue
        yield point


def distinct_requests(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points of the store's requests; of a read, which changes nothing, the beginning.

    Of reads side by side, which fail together, the first counts.
    """
    last: Point | None = None
    for point in points:
        begins_beside = last is not None and last.phase == "before" and _is_same_moment(last, point)
        if point.is_store and not (point.is_read and (point.phase == "after" or begins_beside)):
            yield point
        last = point


def _is_same_moment(last: Point, point: Point) -> bool:
    """Tell whether nothing happens between two points, of which the second is a beginning."""
    if last.step != point.step or point.phase != "before":
        return False
    if last.is_read and point.is_read:
        return True
    return last.phase == "after" and point.step != "tool.call"


def _are_ends_side_by_side(point: Point, following: Point) -> bool:
    """Tell whether two points are ends of reads that were made at once."""
    if point.step != following.step or "before" in (point.phase, following.phase):
        return False
    return point.is_read and following.is_read


def without_repeated_reads(points: Iterable[Point]) -> Iterator[Point]:
    """Yield the points, of a series in which one step only reads the first.

    Neither the store nor the disk learns how far a killed worker has read.
    """
    last: Point | None = None
    for point in points:
        if last is None or not (last.is_read and point.is_read and last.step == point.step):
            yield point
        last = point

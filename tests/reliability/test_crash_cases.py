"""The crash cases that are listed from the points which a worker passes."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reliability.crashes.cases import choose_kinds, list_cases
from reliability.crashes.points import Point, read_point

WORK = ("step", "store.read a", "store.list b", "store.create c", "tool pay 3", "store.create d/7")


def name_points(*lines: str) -> list[Point]:
    return [read_point(line) for line in lines]


def listed(points: Sequence[Point], harm: str) -> list[str]:
    return [str(case.point) for case in list_cases(points) if case.harm == harm]


def test_reads_change_nothing_so_that_a_kill_among_them_is_one_case() -> None:
    points = name_points(
        "before log.open: store.list a #1",
        "after log.open: store.list a #1",
        "before log.open: store.read b #1",
        "before log.open: store.read c #1",
        "after log.open: store.read b #1",
        "after log.open: store.read c #1",
        "before log.open: store.create d #1",
        "after log.open: store.create d #1",
    )
    assert listed(points, "kill") == [
        "before log.open: store.list a #1",
        "after log.open: store.create d #1",
    ]
    assert listed(points, "freeze") == [
        "before log.open: store.list a #1",
        "after log.open: store.list a #1",
        "after log.open: store.read c #1",
        "after log.open: store.create d #1",
    ]
    assert listed(points, "lose") == [
        "before log.open: store.list a #1",
        "before log.open: store.read b #1",
        "before log.open: store.create d #1",
        "after log.open: store.create d #1",
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["before", "after"]), st.sampled_from(["s", "t"]), st.sampled_from(WORK)
        ),
        max_size=60,
    )
)
def test_a_short_run_leaves_out_no_kind_and_plays_no_case_twice(
    passed: list[tuple[str, str, str]],
) -> None:
    lines = [f"{phase} {step}: {work} #{n}" for n, (phase, step, work) in enumerate(passed)]
    cases = list(list_cases(name_points(*lines)))
    kinds: set[str] = set()
    chosen = list(choose_kinds(cases, kinds))
    assert {case.point.kind for case in chosen} == {case.point.kind for case in cases} == kinds
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(cases)
    assert list(choose_kinds(cases, kinds)) == []

"""The options of a worker process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Invalid
from perdure.operations.worker.options import (
    WorkerKind,
    WorkerOptions,
    format_size,
    parse_options,
    parse_size,
)

OPTIONS = st.builds(
    WorkerOptions,
    kinds=st.frozensets(st.sampled_from(("model", "tools", "workflows")), min_size=1),
    concurrency=st.none() | st.integers(1, 10_000),
    max_memory=st.none() | st.integers(1, 1 << 40),
    grace=st.floats(1, 100_000),
    health_port=st.none() | st.integers(0, 65535),
    health_fd=st.none() | st.integers(3, 1000),
)


@given(OPTIONS)
def test_options_are_read_as_they_were_written(options: WorkerOptions) -> None:
    assert parse_options(options.as_arguments()) == options


@given(OPTIONS)
def test_there_is_time_to_record_what_is_cut_off(options: WorkerOptions) -> None:
    assert 0.5 <= options.step_grace < options.grace
    assert options.grace - options.step_grace <= 5.001


def test_without_options_a_worker_takes_everything_and_nothing_is_written() -> None:
    every: frozenset[WorkerKind] = frozenset({"model", "tools", "workflows"})
    assert parse_options([]).kinds == every
    assert WorkerOptions().as_arguments() == []


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2 << 30), ("512M", 512 << 20), ("1.5 g", 3 << 29), ("900kb", 900 << 10), ("7", 7)],
)
def test_a_size_is_a_number_with_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1G", "0", "2 PiB", "1e9", "NaN", "2G2"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(Invalid, match="no size of memory"):
        parse_size(text)


def test_people_read_sizes_with_a_unit() -> None:
    assert format_size(3 << 29) == "1.5 GiB"
    assert format_size(200 << 20) == "200 MiB"

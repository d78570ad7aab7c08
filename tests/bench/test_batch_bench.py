"""The reckoning and the options of the benches of batches."""

import pytest

from bench.batch import FIGURES, compare_sides
from bench.command import add_parts, make_parser

PARTS = ("overhead", "history", "memory")


def row(figure: float) -> dict[str, float]:
    return dict.fromkeys(FIGURES, figure)


def test_a_batch_is_compared_with_the_conversations_of_its_round() -> None:
    compared = compare_sides({"alone": [row(10.0), row(40.0)], "batch": [row(20.0), row(50.0)]})
    assert compared["per_sample"] == {"alone": row(25.0), "batch": row(35.0)}
    ratio = compared["ratios"]["cpu_ms"]
    assert ratio["medians"] == pytest.approx(1.4)
    assert ratio["paired"] == pytest.approx({"median": 1.625, "low": 1.25, "high": 2.0})


@pytest.mark.parametrize(
    ("line", "parts"),
    [("", PARTS[:2]), ("memory", ["memory"]), ("history memory", ["history", "memory"])],
)
def test_a_bench_measures_what_its_command_line_names(line: str, parts: object) -> None:
    parser = make_parser("bench.batch", None)
    add_parts(parser, PARTS, PARTS[:2])
    assert parser.parse_args(line.split()).parts == parts


def test_a_bench_refuses_a_part_that_it_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    parser = make_parser("bench.batch", None)
    add_parts(parser, PARTS, PARTS[:2])
    with pytest.raises(SystemExit):
        parser.parse_args(["speed"])
    assert "speed is none of overhead, history, memory." in capsys.readouterr().err

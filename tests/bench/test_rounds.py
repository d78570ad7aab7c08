"""The rounds of a bench: their order, their floors and their report."""

import pytest

from bench.rounds import Row, RunOnce, report_trials, run_rounds, show_trials


class Machine:
    """Runs that only take note of themselves; each run makes the next one cost 1 ms more."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def run(self, name: str) -> RunOnce:
        async def run_once() -> Row:
            self.order.append(name)
            return {"time_ms": float(len(self.order)), "cpu_ms": 2.0 * len(self.order)}

        return run_once


async def test_the_floor_runs_on_both_sides_of_every_run() -> None:
    machine = Machine()
    await run_rounds(1, {"a": machine.run("a"), "b": machine.run("b")}, machine.run("floor"))
    assert machine.order == ["floor", "a", "floor", "b", "floor"]


async def test_the_order_is_reversed_in_every_other_round() -> None:
    machine = Machine()
    runs = {name: machine.run(name) for name in "abc"}
    await run_rounds(3, runs, machine.run("-"))
    assert [name for name in machine.order if name != "-"] == list("abccbaabc")


async def test_a_trial_has_the_floors_that_were_its_neighbours() -> None:
    machine = Machine()
    runs = {"a": machine.run("a"), "b": machine.run("b")}
    trials = await run_rounds(2, runs, machine.run("floor"))
    seen = [
        (trial.round, trial.name, trial.floor_before["time_ms"], trial.row["time_ms"])
        for trial in trials
    ]
    assert seen == [(0, "a", 1, 2), (0, "b", 3, 4), (1, "b", 6, 7), (1, "a", 8, 9)]
    assert [trial.floor_after["time_ms"] for trial in trials] == [3, 5, 8, 10]


async def test_a_machine_that_slows_down_steadily_does_not_change_the_pairs() -> None:
    machine = Machine()
    runs = {"a": machine.run("a"), "b": machine.run("b")}
    report = report_trials(await run_rounds(5, runs, machine.run("floor")))
    for name in "ab":
        for figure in ("time", "cpu"):
            assert report["floor_ratios"][name][figure]["paired"]["median"] == pytest.approx(1.0)


async def test_a_report_has_every_round_and_the_medians() -> None:
    machine = Machine()
    trials = await run_rounds(3, {"a": machine.run("a")}, machine.run("floor"))
    report = report_trials(trials)
    assert [trial["row"]["time_ms"] for trial in report["trials"]] == [2, 5, 8]
    assert report["medians"]["a"] == {"time_ms": 5, "cpu_ms": 10}
    assert report["before_ratios"] == {}


async def test_runs_of_two_checkouts_are_compared_by_round() -> None:
    machine = Machine()
    runs = {"files before": machine.run("before"), "files": machine.run("now")}
    report = report_trials(await run_rounds(2, runs, machine.run("floor")))
    # now 4 and 7, before 2 and 9
    assert list(report["before_ratios"]) == ["files"]
    time = report["before_ratios"]["files"]["time"]
    assert time["paired"]["high"] == 2.0
    assert time["paired"]["low"] == pytest.approx(7 / 9)
    assert time["medians"] == 1.0


async def test_a_report_is_shown_with_both_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    runs = {"files before": machine.run("before"), "files": machine.run("now")}
    show_trials(report_trials(await run_rounds(2, runs, machine.run("floor"))), "a step")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("floor", "files"))] == [
        *("floor", "files", "files"),
        *("files", "files"),
        "files",
    ]
    assert "1.39 (0.78 to 2.00)" in lines[-1]

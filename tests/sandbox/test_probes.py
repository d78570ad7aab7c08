"""No sandbox lets anything through that it promises to hold."""

import pytest

from tests.sandbox.exhaustions import EXHAUSTIONS
from tests.sandbox.others import SURVIVORS
from tests.sandbox.probe import Probe
from tests.sandbox.probes import ALL, QUICK
from tests.sandbox.running import NAMES, Column, column, escapes


def usable(name: str, groups: bool = True) -> Column:
    found = column(name, groups=groups)
    if found.sandbox is None:
        pytest.skip(f"NOT CHECKED: {found.why}")
    return found


def promised(name: str, probes: tuple[Probe, ...]) -> list[Probe]:
    return [probe for probe in probes if name not in probe.gaps]


def by_anyone(probes: tuple[Probe, ...]) -> list[Probe]:
    return [probe for probe in probes if probe.control == "anyone"]


def test_there_are_enough_probes_and_no_two_have_one_name() -> None:
    names = [probe.name for probe in ALL]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("name", NAMES)
async def test_no_command_escapes(name: str) -> None:
    assert await escapes(usable(name), promised(name, QUICK)) == {}


async def test_without_a_sandbox_they_do() -> None:
    tried = by_anyone(QUICK)
    through = await escapes(column("none"), tried)
    assert [probe.name for probe in tried if probe.name not in through] == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
async def test_nothing_outlives_its_shell(name: str) -> None:
    assert await escapes(usable(name), promised(name, SURVIVORS)) == {}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("name", NAMES)
async def test_no_command_takes_more_than_its_share(name: str, groups: bool) -> None:
    assert await escapes(usable(name, groups), promised(name, EXHAUSTIONS)) == {}


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_without_a_sandbox_they_take_it() -> None:
    tried = by_anyone(EXHAUSTIONS)
    through = await escapes(column("none"), tried)
    assert [probe.name for probe in tried if probe.name not in through] == []

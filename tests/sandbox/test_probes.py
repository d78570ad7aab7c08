"""No probe escapes a sandbox that promises to hold it."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.sandbox.exhaustions import EXHAUSTIONS
from tests.sandbox.others import BREEDERS, SURVIVORS
from tests.sandbox.probe import Probe
from tests.sandbox.probes import ALL, QUICK
from tests.sandbox.running import NAMES, SandboxUnderTest, find_escapes, set_up_sandbox

QUICKEST = "landlock"

MANY_PROCESSES = 1500
"""Processes beside which a scan of /proc takes longer than a process that forks and ends."""


def require_sandbox(name: str, groups: bool = True) -> SandboxUnderTest:
    candidate = set_up_sandbox(name, groups=groups)
    if candidate.sandbox is None:
        pytest.skip(f"NOT CHECKED: {candidate.why}")
    return candidate


def select_promised(name: str, probes: tuple[Probe, ...]) -> list[Probe]:
    return [probe for probe in probes if name not in probe.gaps]


def select_harmless(probes: tuple[Probe, ...]) -> list[Probe]:
    return [probe for probe in probes if probe.control == "anyone"]


def test_there_are_enough_probes_and_no_two_have_one_name() -> None:
    names = [probe.name for probe in ALL]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize(
    "name",
    [name if name == QUICKEST else pytest.param(name, marks=pytest.mark.long) for name in NAMES],
)
async def test_no_command_escapes(name: str) -> None:
    assert await find_escapes(require_sandbox(name), select_promised(name, QUICK)) == {}


@pytest.mark.long
async def test_without_a_sandbox_the_probes_escape() -> None:
    tried = select_harmless(QUICK)
    through = await find_escapes(set_up_sandbox("none"), tried)
    assert [probe.name for probe in tried if probe.name not in through] == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
async def test_nothing_outlives_its_shell(name: str) -> None:
    assert await find_escapes(require_sandbox(name), select_promised(name, SURVIVORS)) == {}


@pytest.mark.long
@pytest.mark.usefixtures("many_processes")
async def test_what_forks_and_ends_is_found_among_many_processes() -> None:
    assert await find_escapes(require_sandbox(QUICKEST), [BREEDERS]) == {}


@pytest.fixture
def many_processes() -> Iterator[None]:
    """Have a process whose children have ended and are not reaped, so that /proc is long."""
    code = (
        "import os, time\n"
        f"for _ in range({MANY_PROCESSES}):\n"
        "    os.fork() or os._exit(0)\n"
        "print(flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()
    yield
    parent.kill()
    parent.communicate()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "groups"),
    [
        pytest.param(
            name,
            groups,
            marks=pytest.mark.longest if groups and name != NAMES[0] else pytest.mark.long,
        )
        for name in NAMES
        for groups in (True, False)
    ],
)
async def test_no_command_takes_more_than_its_share(name: str, groups: bool) -> None:
    assert (
        await find_escapes(require_sandbox(name, groups), select_promised(name, EXHAUSTIONS)) == {}
    )


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_without_a_sandbox_the_probes_exhaust_the_machine() -> None:
    tried = select_harmless(EXHAUSTIONS)
    through = await find_escapes(set_up_sandbox("none"), tried)
    assert [probe.name for probe in tried if probe.name not in through] == []

"""What the bench of the gateway finds in what its clients got, and that it ends in time."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.gateway.attached_clients import attach_clients
from bench.gateway.deliveries import compare_deliveries
from bench.gateway.ending import BenchFailed, end_process, within

STORED = {"one": range(4)}
APPENDED: dict[tuple[str, int | str], float] = {("one", seq): 10.0 + seq for seq in range(4)}


def client(*seqs: int, late: float = 0.1, fault: str = "") -> dict[str, Any]:
    """Return a client that attached after slot 0 and got these slots."""
    received = [(seq, 10.0 + seq + late) for seq in seqs]
    return {"conversation_id": "one", "received": received, "parts": 2, "fault": fault}


def compare(*clients: dict[str, Any]) -> dict[str, Any]:
    return compare_deliveries(clients, STORED, APPENDED)


def test_clients_that_got_everything_have_no_fault() -> None:
    found = compare(client(0, 1, 2, 3), client(0, 1, 2, 3, late=0.3))
    assert found["faults"] == []
    assert found["deliveries"] == 6, "slot 0 was there before they attached"
    assert found["parts_of_texts"] == 4
    assert found["delivery_ms"]["median"] == 100
    assert found["delivery_ms"]["p95"] == 300


def test_the_delays_of_the_first_seconds_are_told_apart() -> None:
    soon, late = client(0, 1, 2, 3), {**client(), "received": [(0, 10.0), (1, 13.0), (5, 15.2)]}
    appended: dict[tuple[str, int | str], float] = {("one", 1): 11.0, ("one", 5): 15.0}
    found = compare_deliveries([soon, late], {"one": (0, 1, 2, 3, 5)}, appended)
    assert found["delivery_ms"]["longest"] == 2000
    assert found["delivery_ms_after_the_burst"]["longest"] == 200


@pytest.mark.parametrize(
    ("seqs", "name"),
    [
        ((0, 1, 3), "lost"),
        ((0, 1, 2), "lost"),
        ((0, 1, 1, 2, 3), "doubled"),
        ((0, 2, 1, 3), "out_of_order"),
        ((0, 1, 2, 3, 4), "unknown"),
    ],
)
def test_what_a_client_did_not_get_right_is_a_fault(seqs: Sequence[int], name: str) -> None:
    found = compare(client(0, 1, 2, 3), client(*seqs))
    assert found[name] == 1
    assert found["fault_count"] == 1


def test_a_client_that_was_cut_off_is_a_fault() -> None:
    found = compare(client(0, 1, 2, 3, fault="the connection ended"))
    assert found["faults"] == ["one: the connection ended"]


def test_a_run_in_which_nothing_was_delivered_is_a_fault() -> None:
    assert compare(client(0, late=20.0))["fault_count"] > 0


async def test_work_that_does_not_end_is_named() -> None:
    with pytest.raises(BenchFailed, match=r"Waiting for ever took more than"):
        async with within(0.05, "Waiting for ever"):
            await asyncio.Event().wait()


async def test_a_process_that_ignores_the_signal_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.gateway.ending.END_SECONDS", 0.2)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{code}; time.sleep(600)"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    await end_process(process)
    assert process.returncode == -9


@pytest.mark.long
async def test_clients_that_cannot_attach_say_so_and_end(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    file = tmp_path / "clients.json"
    for kind in ("socket", "stream", "openhands"):
        async with attach_clients(nowhere, "key", kind, 2, ["one"], file) as clients:
            pass
        assert len(clients.received) == 2
        assert all("refused" in it["fault"].lower() for it in clients.received), clients.received

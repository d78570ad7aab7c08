"""The demo of `make run`, whose worker is killed as its words invite."""

import asyncio
import os
import pty
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command import clean_environment, wait_for_line


async def read_until(terminal: int, text: str | None) -> str:
    """Read what is written to a terminal up to a text, or to its end."""
    written = ""
    with suppress(OSError):  # how a terminal ends
        while text is None or text not in written:
            written += (await asyncio.to_thread(os.read, terminal, 65536)).decode(errors="replace")
    assert text is None or text in written, written
    return written


@pytest.mark.long
async def test_the_demo_names_its_worker_and_goes_on_when_that_is_killed(tmp_path: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    terminal, side = pty.openpty()
    env = {**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")}
    demo = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "examples.demo", env=env, stdout=side, stderr=pipe
    )
    os.close(side)
    try:
        invitation = await wait_for_line(demo.stderr, "kill -9")
        found = re.search(r"kill -9 (\d+)", invitation)
        assert found is not None
        out = await read_until(terminal, "Does it work?")
        os.kill(int(found[1]), signal.SIGKILL)
        reading = asyncio.create_task(read_until(terminal, None))
        _, err = await demo.communicate()
        out += await reading
    finally:
        if demo.returncode is None:
            demo.kill()
            await demo.wait()
        os.close(terminal)
    assert demo.returncode == 0, err.decode()
    assert "total.py adds up the numbers in a text" in out
    assert f"The worker (pid {found[1]}) died by signal 9" in err.decode()

"""The demo of `make run`, whose worker is killed as its words invite."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.command import clean_environment, wait_for_line


@pytest.mark.long
async def test_the_demo_names_its_worker_and_goes_on_when_that_is_killed(tmp_path: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    env = {**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")}
    demo = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "examples.demo", env=env, stdout=pipe, stderr=pipe
    )
    try:
        invitation = await wait_for_line(demo.stderr, "kill -9")
        found = re.search(r"kill -9 (\d+)", invitation)
        assert found is not None
        await wait_for_line(demo.stdout, "Does it work?")
        os.kill(int(found[1]), signal.SIGKILL)
        out, err = await demo.communicate()
    finally:
        if demo.returncode is None:
            demo.kill()
            await demo.wait()
    assert demo.returncode == 0, err.decode()
    assert "total.py adds up the numbers in a text" in out.decode()
    assert f"The worker (pid {found[1]}) died by signal 9" in err.decode()

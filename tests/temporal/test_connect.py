"""Errors of an unreachable server and an invalid configuration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode

from perdure.errors import Unreachable
from perdure.temporal.connect import connect, translate_rpc_errors

ROOT = Path(__file__).parents[2]

CONNECT = """
import asyncio
from perdure.temporal.connect import connect
from perdure.errors import ClientError
try:
    asyncio.run(connect())
except ClientError as error:
    print(type(error).__name__, error, error.hint)
"""


async def test_an_unreachable_server_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(Unreachable, match=r"No Temporal server answers at 127\.0\.0\.1:1\.") as no:
        await connect("127.0.0.1:1")
    assert "perdure dev" in no.value.hint


def test_a_configuration_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "temporal.toml"
    config.write_text('[profile.default]\nadress = "127.0.0.1:1"\n')
    done = subprocess.run(
        [sys.executable, "-c", CONNECT],
        cwd=ROOT,
        env={**os.environ, "TEMPORAL_CONFIG_FILE": str(config)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Invalid The Temporal configuration cannot be read")
    assert "adress" in done.stdout


def test_a_refusal_of_the_server_names_the_command_that_finds_its_cause() -> None:
    refusal = RPCError("shard status unknown", RPCStatusCode.UNAVAILABLE, b"")
    with (
        pytest.raises(Unreachable, match="did not take the message: shard") as caught,
        translate_rpc_errors("did not take the message"),
    ):
        raise refusal
    assert "`perdure doctor`" in caught.value.hint

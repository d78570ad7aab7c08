"""The standard streams of a process that talks a protocol over them."""

import asyncio
import io
import os
import sys

from perdure.acp.stdio import read_lines, write_all

NOISE = """
import asyncio, os, subprocess, sys
from perdure.acp.stdio import hold_stdout, write_all

with hold_stdout() as out:
    print("a library prints")
    os.write(1, b"so does a C library\\n")
    subprocess.run(["echo", "and a program"], check=True)
    print("and who knows better", file=sys.__stdout__, flush=True)
    asyncio.run(write_all(out, b"a message\\n" * 20_000))
print("and then it is over")
"""


async def test_nothing_but_messages_is_on_stdout() -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", NOISE),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await program.communicate()
    assert out == b"a message\n" * 20_000 + b"and then it is over\n"
    for noise in ("a library prints", "so does a C", "and a program", "knows better"):
        assert noise in err.decode()


async def test_a_line_is_whole_on_a_pipe_that_does_not_wait() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as out:
        line = b"x" * 1_000_000 + b"\n"
        task = asyncio.create_task(write_all(out, line))
        assert await asyncio.to_thread(source.readline) == line
        await task


async def test_lines_end_with_their_source() -> None:
    source = io.BytesIO(b"one\n\ntwo")
    assert [line async for line in read_lines(source)] == [b"one\n", b"\n", b"two"]

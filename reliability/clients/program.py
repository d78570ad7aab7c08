"""Programs with clients of others: how each is run, and what it says."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reliability.clients.stage import ClientsStage
from tests.exports import openhands_environment
from tests.gateway.ag_ui import environment as ag_ui

FOLDER = Path(__file__).parent / "programs"

LATE_SECONDS = 240.0
"""Seconds behind its time after which a program counts as one that does not return."""

LAST_LINES = 20

ACCOUNT, FINDING = "ACCOUNT ", "FINDING "
"""How a program's lines begin that have its account of a conversation, or what is wrong."""


@dataclass(frozen=True)
class Account:
    """The account of a conversation that a program gives.

    `sent` counts, by text, how often it sent a message before it was sure of it; `answers` are the
    last words of the agent in the turns that it waited for; `repeats` counts all repeated requests.
    """

    id: str
    sent: dict[str, int]
    answers: list[str]
    repeats: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """A program that is run with the interpreter and the file of `command`.

    `advice` says how its library is installed, where it is not.
    """

    name: str
    command: tuple[str, ...]
    is_installed: Callable[[], bool] = lambda: True
    advice: str = ""


@dataclass
class ProgramReport:
    """The accounts of a program and what is wrong with its run."""

    program: Program
    accounts: list[Account] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


PROGRAMS = (
    Program("openai", (sys.executable, str(FOLDER / "openai_client.py"))),
    Program("mcp", (sys.executable, str(FOLDER / "mcp_client.py"))),
    Program("acp", (sys.executable, str(FOLDER / "acp_client.py"))),
    Program(
        "openhands",
        (str(openhands_environment.PYTHON), str(FOLDER / "openhands_client.py")),
        openhands_environment.ready,
        "openhands-sdk is not installed, see `make openhands`.",
    ),
    Program(
        "ag-ui",
        (str(ag_ui.node()), str(FOLDER / "ag_ui_client.mjs"), str(ag_ui.folder())),
        ag_ui.ready,
        "@ag-ui/client is not installed, see `make ag-ui`.",
    ),
)


async def run_program(
    stage: ClientsStage, program: Program, seconds: float, seed: int
) -> ProgramReport:
    """Run a program until its time is over, and read what it says."""
    report = ProgramReport(program)
    arguments = (*program.command, stage.url, stage.following.key, str(seconds), str(seed))
    errors = stage.folder / f"{program.name}.log"
    with errors.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *arguments, env=make_environment(), stdout=asyncio.subprocess.PIPE, stderr=output
        )
    try:
        async with asyncio.timeout(seconds + LATE_SECONDS):
            assert process.stdout is not None
            async for line in process.stdout:
                read_line(report, line.decode())
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        report.findings.append("it does not return")
    if process.returncode and not report.findings:
        lines = errors.read_text(errors="replace").splitlines()[-LAST_LINES:]
        report.findings.append("\n".join([f"it ends with {process.returncode}:", *lines]))
    if not report.accounts and not report.findings:
        report.findings.append("it had no conversation")
    return report


def make_environment() -> dict[str, str]:
    """Return the environment of a program: that of this one without anybody's settings."""
    names = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "TMPDIR")
    own = {name: os.environ[name] for name in names if name in os.environ}
    return own | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}


def read_line(report: ProgramReport, line: str) -> None:
    """Take a line of a program's output into its report; other lines are its library's."""
    if line.startswith(ACCOUNT):
        fields: dict[str, Any] = json.loads(line.removeprefix(ACCOUNT))
        report.accounts.append(Account(**fields))
    elif line.startswith(FINDING):
        report.findings.append(line.removeprefix(FINDING).strip())

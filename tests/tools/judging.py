"""Judging shell commands as the rules do."""

from events.risk import Risk
from tools.risk.finding import Finding, worst
from tools.risk.shell import read

WORKSPACE = "/data/ws"


def misjudged(commands: str, risk: Risk) -> dict[str, Finding]:
    """The commands, one a line, of which the rules think otherwise."""
    found = {line: worst(read(line, WORKSPACE)) for line in commands.strip("\n").splitlines()}
    return {command: finding for command, finding in found.items() if finding.risk != risk}

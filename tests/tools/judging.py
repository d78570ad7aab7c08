"""Judging shell commands as the rules do."""

from perdure.events.risk import Risk
from perdure.tools.risk.finding import Finding, worst
from perdure.tools.risk.shell import judge_script

WORKSPACE = "/data/ws"


def misjudged(commands: str, risk: Risk) -> dict[str, Finding]:
    """The commands, one a line, of which the rules think otherwise."""
    findings = {
        line: worst(judge_script(line, WORKSPACE)) for line in commands.strip("\n").splitlines()
    }
    return {command: finding for command, finding in findings.items() if finding.risk != risk}

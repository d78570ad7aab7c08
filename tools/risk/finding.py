"""What a rule finds: how dangerous, and why in one sentence."""

from collections.abc import Iterable
from dataclasses import dataclass

from agent.spec import RISKS
from events.risk import Risk


@dataclass(frozen=True)
class Finding:
    """`why` is a sentence for the person who is asked."""

    risk: Risk
    why: str


HARMLESS = Finding("LOW", "No rule finds a danger in it.")


def high(why: str) -> Finding:
    return Finding("HIGH", why)


def medium(why: str) -> Finding:
    return Finding("MEDIUM", why)


def worst(findings: Iterable[Finding], otherwise: Finding = HARMLESS) -> Finding:
    """The first of the most dangerous ones; `otherwise` where none is more dangerous."""
    return max((otherwise, *findings), key=lambda finding: RISKS.index(finding.risk))

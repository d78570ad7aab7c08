"""Every probe in every sandbox that this machine has, as a table: `python -m tests.sandbox`."""

import asyncio
import sys

from tests.sandbox.probe import Probe
from tests.sandbox.probes import ALL
from tests.sandbox.running import NAMES, find_escapes, set_up_sandbox

TRIED = ("none", *NAMES)


async def run_probes(name: str) -> dict[str, str]:
    """Run the probes, and print the result of each."""
    tried = set_up_sandbox(name)
    if tried.sandbox is None:
        print(f"{name}: NOT CHECKED: {tried.why}")
        return dict.fromkeys((probe.name for probe in ALL), "not checked")
    print(f"{name}: does not protect from: {'; '.join(tried.sandbox.gaps)}")
    chosen = [probe for probe in ALL if _is_tried(probe, name)]
    through = await find_escapes(tried, chosen)
    verdicts = {probe.name: "ESCAPED" if probe.name in through else "held" for probe in chosen}
    return {probe.name: verdicts.get(probe.name, "not tried") for probe in ALL}


def _is_tried(probe: Probe, name: str) -> bool:
    return probe.control is not None if name == "none" else name not in probe.gaps


async def main() -> int:
    """Without a sandbox, what is held is held by the machine itself."""
    verdicts = {name: await run_probes(name) for name in TRIED}
    print(f"\n{'':44}", *(f"{name:12}" for name in TRIED))
    for probe in ALL:
        print(f"{probe.name:44}", *(f"{verdicts[name][probe.name]:12}" for name in TRIED))
    escaped = sum(verdicts[name][probe.name] == "ESCAPED" for name in NAMES for probe in ALL)
    held = sum(verdicts[name][probe.name] == "held" for name in NAMES for probe in ALL)
    print(f"\n{len(ALL)} probes: {held} attempts in sandboxes were held, {escaped} succeeded.")
    for probe in ALL:
        for name, why in probe.gaps.items():
            print(f"Not tried in {name}: {probe.name}: {why}.")
    return min(escaped, 1)


sys.exit(asyncio.run(main()))

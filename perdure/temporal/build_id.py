"""The build id of workers: it names the revision of what their workflows decide.

Each task of a history has the build id of the worker that carried it out. A workflow can so decide
as that worker did, without an event that only says so.
"""

REVISION = 1
"""The revision of what workflows decide. 1: conversations save their state in local activities."""


def make_build_id(version: str) -> str:
    """Return the build id of workers of this version of perdure."""
    return f"{version}+{REVISION}"


def read_revision(build_id: str) -> int:
    """Return the revision in a build id: 0 for workers of before, and for any other build id."""
    _, _, revision = build_id.partition("+")
    return int(revision) if revision.isdecimal() else 0

"""The build id of workers, in which a workflow finds the revision of what they decide."""

from importlib.metadata import version

import pytest

from perdure.operations.worker.process import version_options
from perdure.temporal.build_id import REVISION, read_revision


def test_a_worker_names_the_revision_unless_its_operator_chose_the_build_id() -> None:
    own = version_options("queue", None)["build_id"]
    assert own == f"{version('perdure')}+{REVISION}"
    assert read_revision(own) == REVISION
    assert "build_id" not in version_options("queue", "v1")


@pytest.mark.parametrize("build_id", ["", "0.1.0", "0.1.0+", "0.1.0+dev", "6af769d6b376e459"])
def test_any_other_build_id_has_no_revision(build_id: str) -> None:
    assert read_revision(build_id) == 0

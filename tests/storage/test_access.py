"""The access to a bucket that the environment has."""

import pytest

from perdure.storage.access import read_access
from perdure.storage.local_s3 import find_local_access
from perdure.storage.store import S3Access

VARIABLES = {
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
WHOLE = S3Access("http://127.0.0.1:9000", "key", "secret", "eu-west-1")


def test_variables_that_leave_nothing_to_look_up_are_the_access() -> None:
    assert read_access(VARIABLES) == WHOLE
    elsewhere = read_access({**VARIABLES, "AWS_REGION": "eu-north-1"})
    assert elsewhere is not None
    assert elsewhere.region == "eu-north-1", "as other libraries of AWS take it"


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_boto3_looks_up_what_is_missing(name: str) -> None:
    assert read_access({**VARIABLES, name: ""}) is None
    assert read_access({key: text for key, text in VARIABLES.items() if key != name}) is None


@pytest.mark.parametrize(
    "name", ["AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]
)
def test_boto3_decides_where_there_are_other_sources(name: str) -> None:
    assert read_access({**VARIABLES, name: "x"}) is None


def test_only_a_server_of_this_machine_is_local() -> None:
    assert find_local_access(None, VARIABLES) == WHOLE
    assert find_local_access(WHOLE, {}) == WHOLE
    for url in ("http://10.0.0.5:9000", "https://127.0.0.1:9000", "http://127.0.0.1:9000/s3"):
        assert find_local_access(None, {**VARIABLES, "AWS_ENDPOINT_URL_S3": url}) is None

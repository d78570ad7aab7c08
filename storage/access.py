"""The access to a bucket, where the environment has the whole of it."""

from collections.abc import Mapping

from perdure.storage.store import S3Access

OTHER_SOURCES = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
"""Variables by which boto3 may take other keys, or another endpoint, than those of the others."""


def read_access(env: Mapping[str, str]) -> S3Access | None:
    """Return the access that variables give; None where boto3 has to look for something."""
    if any(map(env.get, OTHER_SOURCES)):
        return None
    access = S3Access(
        endpoint_url=env.get("AWS_ENDPOINT_URL_S3"),
        access_key=env.get("AWS_ACCESS_KEY_ID"),
        secret_key=env.get("AWS_SECRET_ACCESS_KEY"),
        region=read_region(env) or env.get("AWS_DEFAULT_REGION"),
    )
    return access if access.is_whole() else None


def read_region(env: Mapping[str, str]) -> str | None:
    """Return the region that other libraries of AWS obey, and boto3 alone does not."""
    return env.get("AWS_REGION") or None

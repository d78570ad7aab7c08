"""The record of a running stack for other programs: `stack.json` in its folder."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from perdure.embedded.folder import write_private
from perdure.storage.open import open_store
from perdure.storage.store import S3Access, Store

# Variables of these would mix a person's own Temporal or AWS account into a stack's.
ACCOUNTS = ("TEMPORAL_", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_")

PROVIDER_VARIABLE = re.compile(r".*_(KEY|TOKEN|BASE|URL|FILE|ID)")


class StackInfo(BaseModel):
    """The addresses and processes of a stack; `ui`, `codec` and `store` are URLs."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    temporal: str
    """HOST:PORT of its gRPC."""
    ui: str | None
    codec: str | None = None
    store: str
    gateway: str | None = None
    """The URL of the gateway, if there is one."""
    bucket: str
    pids: dict[str, int]
    """The process ids of supervisor, temporal, weed, worker and gateway."""
    environment: dict[str, str]
    """The variables that a worker or a client needs to use this stack, keys included."""
    worker_variables: tuple[str, ...] | None = None
    """The names, without values, of what is set for models' providers where the worker runs."""
    sandbox: str | None = None
    """The sandbox that the worker chose, with its gaps; None until it has."""
    worker_ready: bool = True
    """The worker has started, and takes work."""

    @property
    def store_url(self) -> str:
        return f"s3://{self.bucket}"


def open_stack_store(info: StackInfo) -> Store:
    """Open the store of a running stack, with the keys of that stack."""
    env = info.environment
    access = S3Access(
        info.store, env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_REGION"]
    )
    return open_store(info.store_url, access)


def merge_environment(own: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Replace the variables of Temporal and the store in `own` by those of a stack."""
    others = {name: value for name, value in own.items() if not name.startswith(ACCOUNTS)}
    return {**others, **environment}


def provider_variables(own: Mapping[str, str]) -> tuple[str, ...]:
    """List the names of the variables that may hold a key or an address of a models' provider."""
    return tuple(sorted(name for name in own if own[name] and PROVIDER_VARIABLE.fullmatch(name)))


def write_stack_info(info: StackInfo) -> None:
    """Write `stack.json`, readable only by its owner."""
    write_private(_path(info.folder), info.model_dump_json(indent=2))


def read_stack_info(folder: Path) -> StackInfo | None:
    """Read what the last stack in `folder` wrote; None if it ended cleanly."""
    path = _path(folder)
    return StackInfo.model_validate_json(path.read_bytes()) if path.exists() else None


def remove_stack_info(folder: Path) -> None:
    _path(folder).unlink(missing_ok=True)


def _path(folder: Path) -> Path:
    return folder / "stack.json"

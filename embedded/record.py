"""What a running stack tells the other programs of its machine: `stack.json` in its folder."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from embedded.files import write_private

# What would mix a person's own Temporal or AWS account into a stack's.
FOREIGN = ("TEMPORAL_", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_")


class StackInfo(BaseModel):
    """Where the parts of a stack are: `temporal` is host:port; `ui`, `codec` and `store` are URLs.

    `pids` are by name: supervisor, temporal, weed, worker. `environment` is what a worker or a
    client needs to use this stack, keys included.
    """

    model_config = ConfigDict(frozen=True)

    folder: Path
    temporal: str
    ui: str | None
    codec: str | None = None
    store: str
    bucket: str
    pids: dict[str, int]
    environment: dict[str, str]


def environ(own: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables `own`, with a stack's `environment` in place of any other Temporal or store."""
    kept = {name: value for name, value in own.items() if not name.startswith(FOREIGN)}
    return {**kept, **environment}


def write(info: StackInfo) -> None:
    """Writes `stack.json`, for its owner's eyes only."""
    write_private(_path(info.folder), info.model_dump_json(indent=2))


def read(folder: Path) -> StackInfo | None:
    """What the last stack in `folder` wrote, unless it ended cleanly."""
    path = _path(folder)
    return StackInfo.model_validate_json(path.read_bytes()) if path.exists() else None


def remove(folder: Path) -> None:
    """Takes `stack.json` away."""
    _path(folder).unlink(missing_ok=True)


def _path(folder: Path) -> Path:
    return folder / "stack.json"

"""The access of an agent to the memories of its user."""

from typing import Annotated, Literal

from pydantic import Field

from perdure.events.base import Tolerant


class MemoryAccess(Tolerant):
    """The memories that an agent may search, and whether it may write.

    Its tools are `recall` and `remember`.
    """

    search: Literal["app", "user", "none"] = "app"
    """The memories that it may search: those of its app, all of its user's, or none."""
    write: bool = True
    """Whether `remember` puts memories."""
    app: Annotated[str, Field(max_length=255)] | None = None
    """The application to which its memories belong; None means the agent's `app_name`."""
    tags: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], Field(max_length=16)
    ] = ()
    """It finds only memories with one of these tags, and what it puts has all of them."""
    recall: Annotated[int, Field(ge=0, le=20)] = 0
    """The number of memories that each message of the user recalls by itself."""
    ingest: bool = False
    """Whether its conversations are remembered when they end: a summary, and the turns."""

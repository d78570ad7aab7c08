"""The `perdure memory` commands."""

from perdure.cli.options import OutputOptions, argument, id_argument, option
from perdure.cli.runner import command, new_named_group

app = new_named_group("Put, search and remove memories: what outlives a conversation.")


class MemoryOptions(OutputOptions):
    """The options of a command about the user's memories."""

    runs_user_code = True
    """The embedding model may be a function of the user's."""

    through_gateway = "works"


class FilterOptions(MemoryOptions):
    """The options that choose among memories."""

    app: str | None = option("Only memories of this application.", metavar="NAME")
    tags: list[str] | None = option(
        "Only memories with this tag; one of several, if it is repeated.", "--tag", metavar="TAG"
    )
    source: str | None = option(
        "Only what a user, an agent or a conversation has put.", metavar="SOURCE"
    )
    conversation: str | None = option("Only memories of this conversation.", metavar="ID")


@command(app, "commands.memories:put")
class Put(MemoryOptions):
    """Remember a text, and print the memory's id; agents find it by `recall`."""

    text: str = argument("TEXT", "The text; - is stdin.")
    key: str | None = option("What it is about; a memory with the same key is replaced.")
    app: str = option("The application to which it belongs.", default="", metavar="NAME")
    tags: list[str] | None = option("A tag; may be repeated.", "--tag", metavar="TAG")
    metadata: list[str] | None = option(
        "A field beside it, in JSON or as plain text; may be repeated.", metavar="KEY=VALUE"
    )


@command(app, "commands.memories:get")
class Get(MemoryOptions):
    """Print a memory."""

    memory: str = argument("ID", "The memory's id.")


@command(app, "commands.memories:search")
class Search(FilterOptions):
    """Print the memories that fit a query best."""

    query: str = argument("QUERY", "Words or a sentence.")
    limit: int = option("The most memories to print.", default=10, min=1, max=100)


@command(app, "commands.memories:list_memories", "ls")
class List(FilterOptions):
    """List memories, in the order of their ids."""

    limit: int = option("The most memories to print.", default=100, min=1)
    after: str = option("Begin behind the memory of this id.", default="", metavar="ID")


@command(app, "commands.memories:remove", "rm")
class Remove(MemoryOptions):
    """Remove a memory, and delete its text."""

    memory: str = argument("ID", "The memory's id.")


@command(app, "commands.memories:ingest")
class Ingest(MemoryOptions):
    """Remember a conversation: its summary and its turns. A second time takes in what is new."""

    conversation_id: str = id_argument("CONVERSATION", own=True)


@command(app, "commands.memories:reindex")
class Reindex(MemoryOptions):
    """Make the index of the memories anew, as after a change of the embedding model."""

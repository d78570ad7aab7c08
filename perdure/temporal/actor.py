"""The user of a request to a workflow: a header names him, which older workflows ignore.

An argument would break them: a handler of a fixed signature fails its workflow task.
"""

from functools import lru_cache

from temporalio.client import Client

from perdure.temporal.header_sender import HeaderSender
from perdure.temporal.names import ACTOR_HEADER

MAX_CLIENTS = 1_000
"""Users whose clients are kept: one has the connection of all, and a header of its own."""


@lru_cache(maxsize=MAX_CLIENTS)
def act_as(temporal: Client, user_id: str) -> Client:
    """Return the same client, whose requests to workflows say that the user makes them."""
    config, headers = temporal.config(), {ACTOR_HEADER: user_id}
    config["interceptors"] = [*config["interceptors"], HeaderSender(lambda: headers)]
    return Client(**config)

"""A gateway process that waits for its clients for some seconds only."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from perdure.gateway import app, gateway, serve
from perdure.gateway.edge.http_protocol import LimitedProtocol
from perdure.gateway.edge.transfers import TransferLimits
from perdure.gateway.edge.unread import UnreadConnections
from perdure.gateway.following.followers import Followers
from perdure.gateway.following.settings import FollowingLimits
from reliability.following.gateways import serve_gateway

SECONDS = 3.0
"""The time for a head, a body, and a part of an answer."""


def serve_impatient_gateway(env: Mapping[str, str], port: int, log: Path) -> None:
    """Be a gateway with short limits of time, and all others as they are."""
    LimitedProtocol.head_timeout = SECONDS
    limits = FollowingLimits(send_timeout=SECONDS)
    for module, name, made in (
        (
            app,
            "TransferLimits",
            partial(TransferLimits, body_timeout=SECONDS, send_timeout=SECONDS),
        ),
        (gateway, "Followers", partial(Followers, limits=limits)),
        (
            serve,
            "UnreadConnections",
            partial(UnreadConnections, close_timeout=SECONDS, stall_timeout=2 * SECONDS),
        ),
    ):
        setattr(module, name, made)
    serve_gateway(env, port, log)

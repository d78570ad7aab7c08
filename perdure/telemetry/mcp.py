"""What a tool's span says of the MCP server that was called, by the conventions for MCP.

They want no span of its own for the request where the tool has one already, but their attributes
on that.
"""

from typing import Any

from perdure.telemetry import names
from perdure.tools.mcp.call_trace import CallTrace, Peer

CALL_METHOD = "tools/call"


def call_attributes(trace: CallTrace | None) -> dict[str, Any]:
    """Return the attributes of a call at a server; none if this attempt has called no server."""
    if trace is None or trace.peer is None:
        return {}
    known = {
        names.MCP_METHOD: CALL_METHOD,
        names.MCP_PROTOCOL_VERSION: trace.protocol_version,
        names.JSONRPC_REQUEST_ID: trace.request_id,
        names.RPC_STATUS: None if trace.error_code is None else str(trace.error_code),
        **_peer_attributes(trace.peer),
    }
    return {name: value for name, value in known.items() if value is not None}


def _peer_attributes(peer: Peer) -> dict[str, Any]:
    return {
        names.MCP_SESSION_ID: peer.session_id,
        names.NETWORK_TRANSPORT: peer.transport,
        names.NETWORK_PROTOCOL: "http" if peer.transport == "tcp" else None,
        names.SERVER_ADDRESS: peer.address,
        names.SERVER_PORT: peer.port,
    }

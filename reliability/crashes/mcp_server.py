"""A server of the Model Context Protocol that adds: `python -I mcp_server.py`.

It knows no library: one that is built with the protocol's own takes a second of CPU to start, and
each case starts up to four. The tests of the tools have real ones.
"""

import json
import sys
from typing import Any

TOOL = {
    "name": "add",
    "description": "Add two whole numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
        "required": ["a"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None for a method that it lacks."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "adder", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            total = params["arguments"]["a"] + params["arguments"].get("b", 1)
            return {"content": [{"type": "text", "text": str(total)}]}
    return None


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params", {}))
        unknown = {"error": {"code": -32601, "message": "There is no such method."}}
        body = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)


if __name__ == "__main__":
    main()

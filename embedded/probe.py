"""Whether a server on this machine answers."""

import asyncio
import http.client


async def listening(port: int) -> bool:
    """Whether somebody accepts connections at 127.0.0.1:`port`."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def http_status(method: str, port: int, path: str) -> int | None:
    """The HTTP status that 127.0.0.1:`port` gives, or None where nobody answers."""
    return await asyncio.to_thread(_http_status, method, port, path)


def _http_status(method: str, port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

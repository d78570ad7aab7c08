"""Twenty secrets of all shapes, tools that leak them, and a search for leaks."""

import base64
import html
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from mcp.server.mcpserver import MCPServer

from perdure.tools.function import tool
from perdure.tools.tool import Context

PEM = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----".format(
    "\n".join(base64.b64encode(bytes([n, *range(7, 54)])).decode() for n in range(26))
)

VALUES = (
    "k9#vQ2!x",
    "sk-proj-Zq81MvTr0LxYw55c",
    'it\'s "quoted", \\ and `$so` on',
    "  spaces  around and between  .",
    "tab\tand\nnewline\nof-a-short-kind",
    PEM,
    "grüße-✓-日本語-пароль",
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.h-G_9w3kXq",
    "".join(f"{n * 7919 % 65536:04x}" for n in range(1024)),
    "^(a|b)*[c-e]+\\d{3}?.$",
    "100%25%s%20%(name)s%%",
    "C:\\new\\table\\x41\\u0041",
    "<b>&amp;</b>'x'=\"y\"",
    "postgresql://user:p%40ss@db.example.org:5432/app?ssl=1#x",
    "-starts-with-a-dash --and=flags",
    "$HOME/$(whoami)/${PATH}/!!",
    '{"type": "account", "private_key": "line-of-key-one\\nline-of-key-two"}',
    "0123456789abcdef0123456789abcdef",
    "~!@#$%^&*()_+`-={}|[]\\:\";'<>?,./",
)

NAMES = tuple(f"CANARY_{number:02}" for number in range(len(VALUES)))

CANARIES = dict(zip(NAMES, VALUES, strict=True))

COPY = "copy.txt"
"""File of the workspace into which a command copies all secrets."""

LEAK = """
import base64, html, json, os, shlex, sys
from urllib.parse import quote, quote_plus
for name in sys.argv[1:]:
    value = os.environ[name]
    raw = value.encode()
    print(value)
    print(json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), repr(raw))
    print(shlex.quote(value), html.escape(value), quote(value, safe=""), quote_plus(value))
    print(raw.hex(), raw.hex().upper(), raw.hex(":"))
    for before in range(3):
        print(base64.b64encode(b"u" * before + raw).decode(), base64.encodebytes(raw).decode())
    print(base64.urlsafe_b64encode(raw).decode(), flush=True)
"""
"""A program that prints the variables named by its arguments in all forms."""


def encoded_forms(value: str) -> Iterator[bytes]:
    """Yield each form of a value, and of each long line of it."""
    raw = value.encode()
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield text.encode()
        yield json.dumps(text)[1:-1].encode()
        yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value), html.escape(value)):
        yield quoted.encode()
    for before in range(3):
        packed = base64.b64encode(bytes(before) + raw)[4:-4]
        yield packed
        yield packed.replace(b"+", b"-").replace(b"/", b"_")
    for line in value.splitlines():
        if len(line) >= 40:
            yield line.encode()
            yield base64.b64encode(line.encode())[:-4]


FORMS = {name: frozenset(encoded_forms(value)) for name, value in CANARIES.items()}


def find_leaks(data: bytes) -> set[str]:
    """Return the names of the secrets that are in the data."""
    return {name for name, forms in FORMS.items() if any(form in data for form in forms)}


@tool()
def raise_them(context: Context) -> str:
    """Fails, and says too much."""
    raise RuntimeError(f"cannot log in with {(context.workspace / COPY).read_text()}")


@tool()
async def keep_them(context: Context) -> str:
    """Keeps and tells too much."""
    data = (context.workspace / COPY).read_bytes()
    context.progress(data.decode())
    return await context.keep(b"\x00binary\xff" + data)


TOOLS = (raise_them, keep_them)


def echo() -> str:
    """Return the content of the copy."""
    return Path(COPY).read_text()


def refuse() -> str:
    """Refuses to say what is in the copy."""
    raise ValueError(Path(COPY).read_text())


if __name__ == "__main__":
    server: MCPServer = MCPServer("spilling", log_level="ERROR")
    server.add_tool(echo)
    server.add_tool(refuse)
    server.run("stdio")

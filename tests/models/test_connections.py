"""Connections to servers of models: kept open, refused, encrypted, and through proxies."""

import asyncio
import datetime
import ipaddress
import os
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from perdure.models.direct.connections import Connections, find_proxy
from perdure.models.model import ModelRefused, ModelUnavailable, Request
from perdure.testing.server import serve_scripts
from tests.models.conftest import Way
from tests.models.raw_server import Exchange, serve_raw
from tests.models.requests import ask, environment, text_in, user
from tests.models.scripts import STORY

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

NO_PROXIES = dict.fromkeys(
    f"{name}_proxy" if lower else f"{name.upper()}_PROXY"
    for name in ("http", "https", "all", "no")
    for lower in (True, False)
)
NO_CERTIFICATES = dict.fromkeys(("SSL_VERIFY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))


async def answer_all(exchange: Exchange) -> None:
    while await exchange.read_request():
        exchange.write_stream("hi")


async def test_a_connection_is_kept_for_the_next_request(direct_way: Way) -> None:
    async with serve_raw(answer_all) as (host, exchanges):
        for _ in range(3):
            answer = await ask(direct_way.model, direct_way.spec(f"http://{host}/v1", "m"))
            assert text_in(answer) == "hi"
    ((exchange,)) = exchanges
    assert len(exchange.heads) == 3


async def test_an_answer_does_not_wait_for_the_end_of_its_body(direct_way: Way) -> None:
    async def leave_open(exchange: Exchange) -> None:
        while await exchange.read_request():
            exchange.write_stream("hi", end=False)

    async with serve_raw(leave_open) as (host, exchanges):
        for _ in range(2):
            answer = await ask(
                direct_way.model, direct_way.spec(f"http://{host}/v1", "m", timeout=20)
            )
            assert text_in(answer) == "hi"
    assert len(exchanges) == 2, "an unfinished body ends its connection"


async def test_a_request_on_a_connection_that_was_closed_meanwhile_is_sent_again(
    direct_way: Way,
) -> None:
    async def answer_once(exchange: Exchange) -> None:
        await exchange.read_request()
        exchange.write_stream("hi")
        await exchange.read_request()  # and closes the connection without a word

    async with serve_raw(answer_once) as (host, exchanges):
        spec = direct_way.spec(f"http://{host}/v1", "m")
        answers = [text_in(await ask(direct_way.model, spec)) for _ in range(4)]
    assert answers == ["hi"] * 4
    assert [len(exchange.heads) for exchange in exchanges] == [2, 1, 2, 1]


async def test_a_request_on_a_fresh_connection_is_sent_once(direct_way: Way) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.read_request()

    async with serve_raw(refuse) as (host, exchanges):
        with pytest.raises(ModelUnavailable, match=f"at http://{host}(/v1)? failed") as raised:
            await ask(direct_way.model, direct_way.spec(f"http://{host}/v1", "m"))
    assert raised.value.code == "connection"
    assert [len(exchange.heads) for exchange in exchanges] == [1]


async def test_a_request_whose_answer_has_begun_is_sent_once(direct_way: Way) -> None:
    async def break_off(exchange: Exchange) -> None:
        await exchange.read_request()
        exchange.write_stream("hi")
        await exchange.read_request()
        exchange.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        exchange.writer.write(b"transfer-encoding: chunked\r\n\r\n")

    async with serve_raw(break_off) as (host, exchanges):
        spec = direct_way.spec(f"http://{host}/v1", "m")
        assert text_in(await ask(direct_way.model, spec)) == "hi"
        with pytest.raises(ModelUnavailable, match="failed") as raised:
            await ask(direct_way.model, spec)
    assert raised.value.code == "connection"
    assert [len(exchange.heads) for exchange in exchanges] == [2]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_unreachable_server_is_named_with_the_reason(direct_way: Way, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:1/v1"
    reason = r"\(Cannot connect to host 127.0.0.1:1 \[Connect call failed .*\]\): check both"
    with pytest.raises(ModelUnavailable, match=f"at {direct_way.address(address)} failed {reason}"):
        await ask(direct_way.model, direct_way.spec(address, "m"))


async def test_a_host_that_does_not_accept_is_given_up() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        connections = Connections(os.environ, connect_seconds=0.2)
        try:
            url = f"http://127.0.0.1:{full.getsockname()[1]}/v1/chat/completions"
            with pytest.raises(ConnectionError, match="Connection timeout to host"):
                await anext(connections.events(url, b"{}", {}))
        finally:
            await connections.close()


@pytest.mark.long
async def test_a_proxy_of_the_environment_is_used(way: Way) -> None:
    async with serve_raw(answer_all) as (host, exchanges):
        with environment(**{**NO_PROXIES, "HTTP_PROXY": f"http://{host}"}):
            spec = way.spec("http://far.invalid/v1", "m")
            assert text_in(await ask(way.model, spec)) == "hi"
    ((exchange,)) = exchanges
    assert re.match(r"POST http://far\.invalid/v1/\S+ HTTP/1\.1", exchange.heads[0])


async def test_no_proxy_is_used_for_the_hosts_of_no_proxy(way: Way, url: str) -> None:
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    async with serve_scripts({"story": STORY}) as url:
        with environment(**{**NO_PROXIES, **nowhere}):
            answer = await ask(way.model, way.spec(url, "story"))
    assert text_in(answer)


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "http://a/v1", None),
        ({"HTTP_PROXY": "p:1"}, "http://a/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a/v1", None),
        ({"HTTPS_PROXY": "http://u:w@p:1"}, "https://a/v1", "http://u:w@p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://a/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".b.c"}, "https://a.b.c/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://a.b.c/v1", None),
    ],
)
def test_the_proxy_is_found_in_the_environment(
    variables: dict[str, str], url: str, proxy: str | None
) -> None:
    with environment(**{**NO_PROXIES, **variables}):
        assert find_proxy(url) == proxy


async def test_a_proxy_of_another_kind_is_refused_by_its_name(direct_way: Way) -> None:
    with (
        environment(**{**NO_PROXIES, "ALL_PROXY": "socks5://user:word@p:1"}),
        pytest.raises(ModelRefused, match=r"a proxy of the kind socks5://: set one that") as raised,
    ):
        await ask(direct_way.model, direct_way.spec("http://far.invalid/v2", "m"))
    assert "word" not in str(raised.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a certificate of localhost that no one else knows, with its key."""
    key, folder = ec.generate_private_key(ec.SECP256R1()), tmp_path_factory.mktemp("tls")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, form, plain))
    (folder / "certificate.pem").write_bytes(made.public_bytes(encoding))
    return folder / "certificate.pem"


async def ask_over_tls(way: Way, certificate: Path, **variables: str) -> str:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, certificate.with_name("key.pem"))
    async with serve_raw(answer_all, tls) as (host, _):
        with environment(**{**NO_CERTIFICATES, **NO_PROXIES, **variables}):
            return text_in(await ask(way.model, way.spec(f"https://{host}/v1", "m")))


async def test_an_unknown_certificate_is_refused(tls_way: Way, certificate: Path) -> None:
    with pytest.raises(ModelUnavailable, match="certificate verify failed") as raised:
        await ask_over_tls(tls_way, certificate)
    assert raised.value.code == "connection"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_VERIFY"])
async def test_a_certificate_can_be_made_known(
    tls_way: Way, certificate: Path, variable: str
) -> None:
    assert await ask_over_tls(tls_way, certificate, **{variable: str(certificate)}) == "hi"


async def test_a_certificate_known_to_requests_is_accepted(
    direct_way: Way, certificate: Path
) -> None:
    known = {"REQUESTS_CA_BUNDLE": str(certificate)}
    assert await ask_over_tls(direct_way, certificate, **known) == "hi"


async def test_a_file_without_certificates_is_named(direct_way: Way, certificate: Path) -> None:
    key = certificate.with_name("key.pem")
    with pytest.raises(ModelRefused, match=f"certificates in {key} cannot be read .*SSL_CERT_FILE"):
        await ask_over_tls(direct_way, certificate, SSL_CERT_FILE=str(key))


async def test_certificates_need_not_be_verified(tls_way: Way, certificate: Path) -> None:
    assert await ask_over_tls(tls_way, certificate, SSL_VERIFY="False") == "hi"


@pytest.mark.long
async def test_many_requests_are_answered_at_once(direct_way: Way, url: str) -> None:
    spec = direct_way.spec(url, "story")
    requests = [Request(spec, [user(f"question {number}")]) for number in range(150)]
    calls = [direct_way.model.complete(request, lambda _: None) for request in requests]
    answers = await asyncio.gather(*calls)
    assert {text_in(answer) for answer in answers} == {STORY.answers[0].content}


ONCE = """
import asyncio, sys
from perdure.agent.spec import ModelSpec
from perdure.models.model import Request
from perdure.models.router import ModelRouter

async def ask():
    asyncio.get_running_loop().slow_callback_duration = 60  # a slow machine is no warning
    spec = ModelSpec(name=sys.argv[1], api_base=sys.argv[2])
    request = Request(spec, [{"role": "user", "content": "hi"}])
    await ModelRouter().complete(request, lambda _: None)

for _ in range(2):
    asyncio.run(ask())
print([name for name in ("litellm", "openai", "httpx") if name in sys.modules])
"""


@pytest.mark.long
async def test_an_event_loop_ends_without_open_connections_or_litellm(
    direct_way: Way, url: str
) -> None:
    arguments = (f"{direct_way.provider}/story", direct_way.address(url))
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", ONCE, *arguments]
    ran = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("[]\n", "", 0)

"""What browsers report of the page: each violation is a line of the audit that nobody can forge."""

import asyncio
import json
import logging
from typing import Any

import pytest

from perdure.gateway.page.violations import MAX_WRITTEN
from tests.gateway.page.browser import Visitor, expect
from tests.gateway.security.raw import build_request, send_raw
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness

OLD, NEW = "application/csp-report", "application/reports+json"
CANARY = "canary-81fe"

OF_REPORT_URI = {
    "csp-report": {
        "document-uri": f"http://127.0.0.1/conversations/x?token={CANARY}",
        "violated-directive": "script-src-elem",
        "effective-directive": "script-src-elem",
        "blocked-uri": f"https://{CANARY}:pw@evil.example:8443/x.js?{CANARY}",
        "script-sample": CANARY,
        "line-number": 12,
    }
}

OF_REPORT_TO = {
    "type": "csp-violation",
    "age": 3,
    "url": f"http://127.0.0.1/?{CANARY}",
    "user_agent": CANARY,
    "body": {"effectiveDirective": "script-src", "blockedURL": "inline", "sample": CANARY},
}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "perdure.gateway")
    return caplog


def violations(lines: pytest.LogCaptureFixture) -> list[Any]:
    """Return the lines about violations; every line of the audit has to be one JSON object."""
    told = [it.getMessage() for it in lines.records if it.name == "perdure.gateway.audit"]
    assert not any("\n" in line or "\r" in line for line in told)
    return [it for it in map(json.loads, told) if it["act"] == "page.violation"]


async def report(stage: GatewayStage, kind: str, content: Any, **headers: str) -> int:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    given = {"Content-Type": kind, **headers}
    answer = await stage.client_with(None).post("/csp-report", content=body, headers=given)
    assert CANARY not in answer.text
    return answer.status_code


@pytest.mark.long
async def test_the_policy_of_the_page_names_the_route(world: ConversationHarness) -> None:
    """Under plain http there is no `report-to`, with which a browser would report nothing."""
    async with open_gateway(world, gateway_url="https://perdure.example.org") as stage:
        page = await stage.client_with(None).get("/", headers={"Host": "perdure.example.org"})
        assert page.headers["content-security-policy"].endswith(
            "; report-uri /csp-report; report-to page"
        )
        assert page.headers["reporting-endpoints"] == 'page="/csp-report"'
        local = await stage.client_with(None).get("/")
        assert local.headers["content-security-policy"].endswith("; report-uri /csp-report")
        assert "reporting-endpoints" not in local.headers


async def test_a_violation_is_written_without_what_the_report_quotes(
    idle_stage: GatewayStage, lines: pytest.LogCaptureFixture
) -> None:
    assert await report(idle_stage, OLD, OF_REPORT_URI) == 204
    assert await report(idle_stage, NEW, [OF_REPORT_TO, {"type": "deprecation"}]) == 204
    old, new = violations(lines)
    assert (old["directive"], old["blocked"], old["line"]) == (
        "script-src-elem",
        "https://evil.example:8443",
        12,
    )
    assert (new["directive"], new["blocked"], new["address"]) == (
        "script-src",
        "inline",
        "127.0.0.1",
    )
    assert CANARY not in lines.text


@pytest.mark.parametrize(
    "forged",
    [
        'x\n2026-01-01 1 INFO {"act": "key.create", "user": "anna"}',
        "script-src\r\n",
        "\x1b[2J",
        "a" * 5000,
        ["script-src"],
        {"script-src": 1},
        10**400,
        None,
        "http://[",
        "http://evil\u2028.example/",
        "data:text/html,\n" + CANARY,
    ],
)
async def test_a_report_forges_no_line(
    idle_stage: GatewayStage, lines: pytest.LogCaptureFixture, forged: Any
) -> None:
    body = {"effectiveDirective": forged, "blockedURL": forged, "lineNumber": forged}
    assert await report(idle_stage, NEW, [{"type": "csp-violation", "body": body}]) in (204, 422)
    for line in violations(lines):
        assert line["directive"] is line["line"] is None
        assert line["blocked"] in (None, "data", "http")
    assert "key.create" not in lines.text
    assert CANARY not in lines.text


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (OLD, b"", 422),
        (OLD, b"{", 422),
        (OLD, b"\xff\xfe\x00", 422),
        (OLD, b"[" * 16_000, 422),
        (OLD, b"9" * 16_000, 422),
        (OLD, b"null", 422),
        (OLD, b'{"csp-report": "x"}', 422),
        (NEW, b'[1, null, {"type": "csp-violation", "body": 3}]', 422),
        ("text/plain", json.dumps(OF_REPORT_URI).encode(), 422),
        ("application/json", json.dumps([OF_REPORT_TO]).encode(), 422),
        (NEW, b" " * 20_000, 413),
    ],
)
async def test_what_is_no_report_is_refused(
    idle_stage: GatewayStage,
    lines: pytest.LogCaptureFixture,
    kind: str,
    body: bytes,
    status: int,
) -> None:
    assert await report(idle_stage, kind, body) == status
    assert violations(lines) == []


async def test_a_report_that_does_not_end_is_not_kept(idle_stage: GatewayStage) -> None:
    """Each of these has no length, or says another one than it has."""
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    headers = {"Host": "127.0.0.1", "Content-Type": OLD, "Transfer-Encoding": "chunked"}
    request = build_request("/csp-report", "POST", headers)
    answer = await send_raw(idle_stage.url, request, *[chunk] * 200)
    assert set(answer.statuses) <= {401, 413}
    stated = {"Host": "127.0.0.1", "Content-Type": OLD, "Content-Length": "10000000000"}
    huge = await send_raw(idle_stage.url, build_request("/csp-report", "POST", stated))
    assert huge.statuses == (413,)


async def test_a_page_of_another_site_reports_nothing(
    idle_stage: GatewayStage, lines: pytest.LogCaptureFixture
) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert await report(idle_stage, OLD, OF_REPORT_URI, **headers) == 403
    assert await report(idle_stage, OLD, OF_REPORT_URI, **{"Sec-Fetch-Site": "same-origin"}) == 204
    assert len(violations(lines)) == 1


@pytest.mark.long
async def test_reports_are_few(world: ConversationHarness, lines: pytest.LogCaptureFixture) -> None:
    async with open_gateway(world, gateway_rates={"report": 6}) as stage:
        statuses = [await report(stage, NEW, [OF_REPORT_TO] * 50) for _ in range(8)]
        assert statuses == [204] * 5 + [429] * 3
        assert len(violations(lines)) == 5 * MAX_WRITTEN
        assert (await stage.anna.get("/v1/me")).status_code == 200


@pytest.mark.page
async def test_a_browser_reports_an_image_that_it_has_not_loaded(
    anna: Visitor, lines: pytest.LogCaptureFixture
) -> None:
    await anna.goto("/")
    await expect(anna, "text=New conversation")
    anna.expected += ["Content Security Policy", "img-src", "request to https://evil.example"]
    await anna.page.evaluate(
        "() => document.body.appendChild(Object.assign(document.createElement('img'),"
        " {src: 'https://evil.example/x.png'}))"
    )
    async with asyncio.timeout(60):
        while not violations(lines):
            await asyncio.sleep(0.2)
    assert violations(lines)[0]["directive"] == "img-src"
    assert violations(lines)[0]["blocked"] == "https://evil.example"

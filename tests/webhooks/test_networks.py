"""The addresses that posts may go to."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Invalid
from perdure.webhooks.networks import Networks, parse_networks, parse_url

PUBLIC = Networks()


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1%eth0"),
        *("fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "somewhere", ""),
    ],
)
def test_private_addresses_are_refused(address: str) -> None:
    assert not PUBLIC.allow(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert PUBLIC.allow(address)


def test_a_network_allows_its_own_addresses_alone() -> None:
    networks = parse_networks(["10.1.0.0/16", "fd00::/8"])
    allowed = ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "8.8.8.8"]
    assert all(map(networks.allow, allowed))
    assert not any(map(networks.allow, ["10.2.0.1", "127.0.0.1", "::1"]))


@given(st.ip_addresses())
def test_no_private_address_is_allowed(address: IPv4Address | IPv6Address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local:
        assert not PUBLIC.allow(str(address))


@given(st.ip_addresses(v=4))
def test_an_address_is_the_same_however_it_is_written(address: IPv4Address) -> None:
    mapped = ip_address(f"::ffff:{address}")
    assert PUBLIC.allow(str(mapped)) == PUBLIC.allow(str(address))


@pytest.mark.parametrize("text", ["10.0.0.1/8", "ten", "10.0.0.0/40"])
def test_a_network_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="PERDURE_WEBHOOK_NETWORKS"):
        parse_networks([text])


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://example.org/hooks?a=b", ("example.org", 443)),
        ("http://example.org", ("example.org", 80)),
        ("https://[2606:4700::1]:8443/", ("2606:4700::1", 8443)),
    ],
)
def test_a_url_has_a_host_and_a_port(url: str, place: tuple[str, int]) -> None:
    assert parse_url(url) == place


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "//example.org/", "file:///etc/passwd", "https://", "https://a:b/"),
        *("https://a b/", "https://a\n/", "https://me@a/", "https://a/#b", "https://[::1/"),
        "https://example.org/" + "a" * 2000,
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match=r"URL"):
        parse_url(url)

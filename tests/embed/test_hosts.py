"""Where a server's provider may be (security.md 2): listed names, and behind them public or listed addresses."""

from __future__ import annotations

import pytest

from omnigraph.embed.hosts import ProviderHosts, is_loopback
from omnigraph.errors import InvalidRequest

INSIDE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "ff02::1",
    "::ffff:169.254.169.254",
    "::ffff:10.1.2.3",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "no address",
]


@pytest.mark.parametrize("address", INSIDE)
def test_a_listed_name_does_not_lead_inside(address: str) -> None:
    assert not ProviderHosts.parse(["vectors.example"]).admits("vectors.example", address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_a_listed_name_leads_to_public_addresses(address: str) -> None:
    assert ProviderHosts.parse(["vectors.example"]).admits("vectors.example", address)


@pytest.mark.parametrize(
    ("listed", "address"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.0.0/16", "10.1.2.3"),
        ("10.1.2.3/16", "10.1.9.9"),
        ("fd00::/8", "fd00::1"),
        ("[fd00::1]", "fd00::1"),
        ("10.1.2.3", "::ffff:10.1.2.3"),
    ],
)
def test_an_address_inside_is_reached_if_it_is_listed_itself(listed: str, address: str) -> None:
    assert ProviderHosts.parse(["vectors.example", listed]).admits("vectors.example", address)
    assert not ProviderHosts.parse([listed]).admits("vectors.example", "10.200.0.1")


def test_this_machine_is_reached_by_its_listed_name_only() -> None:
    listed = ProviderHosts.parse(["LocalHost"])
    assert listed.lists("localhost")
    assert listed.admits("localhost", "127.0.0.1")
    assert listed.admits("localhost", "::1")
    assert not listed.admits("localhost", "10.0.0.1")
    assert not listed.admits("vectors.example", "127.0.0.1")
    assert not listed.lists("127.0.0.1")
    assert not ProviderHosts().lists("localhost")


@pytest.mark.parametrize("text", ["", "a b", "https://a.example", "a.example:443", "-a", "a_b", "ä.example", "*"])
def test_a_listed_text_that_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ProviderHosts.parse([text])
    assert refused.value.code == "invalid_setting"


def test_names_that_only_look_like_this_machine_are_not_it() -> None:
    assert not any(map(is_loopback, ["localhost.example", "127.0.0.1.example", "0.0.0.0", "2130706433", "127.1"]))
    assert all(map(is_loopback, ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"]))

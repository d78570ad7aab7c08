import os
import socket
import sys
from pathlib import Path

import pytest

from perdure.embedded.errors import PortTaken
from perdure.embedded.ports import choose_ports, find_free_ports

NAMES = ("first", "second")


def test_free_ports_are_all_different() -> None:
    assert len(set(find_free_ports(50))) == 50


def test_a_port_in_use_is_not_free() -> None:
    [port] = find_free_ports(1)
    with socket.socket() as taken:
        taken.bind(("", port))
        assert port not in find_free_ports(22_768)


def test_ports_are_the_same_at_the_next_start(tmp_path: Path) -> None:
    first = choose_ports(tmp_path / "ports.json", NAMES)
    assert len(set(first.values())) == 2
    assert choose_ports(tmp_path / "ports.json", NAMES) == first


def test_a_remembered_port_that_another_program_has_is_replaced_and_named(tmp_path: Path) -> None:
    lines: list[str] = []
    first = choose_ports(tmp_path / "ports.json", NAMES)
    with socket.create_server(("127.0.0.1", first["first"])):
        second = choose_ports(tmp_path / "ports.json", NAMES, report=lines.append)
    assert second["second"] == first["second"]
    assert second["first"] != first["first"]
    assert [str(first["first"]) in line for line in lines] == [True]
    assert choose_ports(tmp_path / "ports.json", NAMES) == second


def test_no_port_is_one_that_another_server_is_about_to_take(tmp_path: Path) -> None:
    first = choose_ports(tmp_path / "ports.json", NAMES)
    second = choose_ports(tmp_path / "ports.json", NAMES, others=first.values())
    assert not {*first.values()} & {*second.values()}


def test_no_port_is_the_one_above_another(tmp_path: Path) -> None:
    names = [f"server {number}" for number in range(60)]
    ports = choose_ports(tmp_path / "ports.json", names, span=10_000).values()
    assert not {port + 10_000 for port in ports} & {*ports}


def test_a_wanted_port_is_taken_and_remembered(tmp_path: Path) -> None:
    [port] = find_free_ports(1)
    ports = choose_ports(tmp_path / "ports.json", NAMES, {"first": port})
    assert ports["first"] == port
    assert choose_ports(tmp_path / "ports.json", NAMES) == ports


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells who listens")
def test_a_wanted_port_that_another_program_has_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"Port {port} cannot be had: .*pid {os.getpid()}\)"):
            choose_ports(tmp_path / "ports.json", NAMES, {"first": port})


def test_a_port_whose_last_connection_has_just_ended_is_free(tmp_path: Path) -> None:
    [port] = find_free_ports(1)
    address = ("127.0.0.1", port)
    with socket.create_server(address) as server, socket.create_connection(address):
        server.accept()[0].close()  # the side that ends first keeps the port for a minute
    assert choose_ports(tmp_path / "ports.json", ("only",), {"only": port}) == {"only": port}


def test_a_damaged_file_of_ports_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text("{")
    ports = choose_ports(tmp_path / "ports.json", NAMES)
    assert choose_ports(tmp_path / "ports.json", NAMES) == ports

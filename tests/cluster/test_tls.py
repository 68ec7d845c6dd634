"""Certificates on loopback: what is written, who gets in and who does not, and where things listen."""

import json
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

# about ten processes start for a run: on a busy machine that takes its time
pytestmark = pytest.mark.timeout(300)

PROJECT = Path(__file__).parents[2]
MAKE = (sys.executable, PROJECT / "cluster" / "certificates.py")


def test_certificates_are_private_and_never_replaced(room: Any, private: Callable[[Path], bool]) -> None:
    folder = room.path / "keys"
    assert room.run(*MAKE, folder, "--days", 2).returncode == 0
    names = {f"{role}{part}.pem" for role in ("scheduler", "worker", "client") for part in ("", "-key")}
    assert {path.name for path in folder.iterdir()} == names | {"ca.pem", "dask.yaml", "tls.yaml"}
    assert all(map(private, [folder, *folder.iterdir()]))
    before = (folder / "ca.pem").read_bytes()
    again = room.run(*MAKE, folder)
    assert again.returncode == 2
    assert "exists" in again.stderr
    assert (folder / "ca.pem").read_bytes() == before


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A TLS handshake in memory; raises ssl.SSLError when one side refuses."""
    wires = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    ends = [server.wrap_bio(wires[0], wires[1], server_side=True), client.wrap_bio(wires[1], wires[0])]
    for end in 2 * [*reversed(ends)]:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue


def context(folder: Path, role: str, purpose: ssl.Purpose) -> ssl.SSLContext:
    made = ssl.create_default_context(purpose, cafile=str(folder / "ca.pem"))
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    made.load_cert_chain(folder / f"{role}.pem", folder / f"{role}-key.pem")
    return made


def test_a_client_cannot_pose_as_a_scheduler(room: Any) -> None:
    one, other = room.path / "one", room.path / "other"
    for folder in (one, other):
        assert room.run(*MAKE, folder).returncode == 0
    serve, call = ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH
    for server in ("scheduler", "worker"):
        for client in ("scheduler", "worker", "client"):
            shake_hands(context(one, server, serve), context(one, client, call))
    with pytest.raises(ssl.SSLError, match="certificate"):
        shake_hands(context(one, "client", serve), context(one, "worker", call))
    with pytest.raises(ssl.SSLError, match="certificate"):
        shake_hands(context(one, "scheduler", serve), context(other, "client", call))


@pytest.fixture
def cluster(room: Any, until: Callable[..., None]) -> Iterator[tuple[str, Path]]:
    """The address of a scheduler with a worker, both over TLS, and the folder of their certificates."""
    folder, file = room.path / "keys", room.path / "scheduler.json"
    assert room.run(*MAKE, folder).returncode == 0
    here = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", file)
    starting = room.start("dask", "scheduler", *here, "--port", 0, DASK_CONFIG=folder)
    joining = room.start("dask", "worker", *here, "--nthreads", 1, DASK_CONFIG=folder)
    with starting as scheduler, joining as worker:
        until(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"], folder
        for process in (worker, scheduler):
            process.terminate()
            process.communicate(timeout=30)


def test_a_cluster_over_tls_solves_and_refuses_strangers(room: Any, points: Path, cluster: tuple[str, Path]) -> None:
    address, folder = cluster
    assert address.startswith("tls://127.0.0.1:")
    solve = ("dfeas", "solve", points, "--json", "--scheduler", address, "--out")
    assert room.verdict(*solve, "run", DASK_CONFIG=folder) == "feasible"
    assert room.addresses() == {"127.0.0.1"}

    # no certificate; and one of another authority
    assert room.run(*MAKE, room.path / "others").returncode == 0
    for settings in ({}, {"DASK_CONFIG": room.path / "others"}):
        refused = room.run(*solve, "refused", **settings)
        assert refused.returncode == 2, refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        assert "no Dask scheduler answers" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert not (room.path / "refused").exists()
    # with certificates nothing is sent in the clear
    plain = room.run(*solve[:-2], address.replace("tls://", "tcp://"), "--out", "plain", DASK_CONFIG=folder)
    assert plain.returncode == 2

    # at the socket: the scheduler answers nobody who has shown nothing
    host, port = address.removeprefix("tls://").split(":")
    stranger = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    stranger.check_hostname = False
    with (
        socket.create_connection((host, int(port)), timeout=30) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
        stranger.wrap_socket(raw) as line,
    ):
        assert line.recv(1) == b"something"

"""Each kind of address and of refusal, by a program that serves it: moto for S3 and the web, Azurite for Azure."""

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import boto3
import numpy as np
import pytest

import dfeas
from dfeas import ingest
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage import object_store
from dfeas.data.storage.object_path import ObjectPath
from dfeas.errors import BadInputError, DfeasError, UsageError
from tests.data.s3 import SECRET, Door

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of the account that every Azurite has, from its documentation."""


@pytest.fixture(scope="module", autouse=True)
def stored(server: tuple[Door, dict[str, str]]) -> None:
    generate(Instance("planted", 5, 700, 0.1, block_rows=100), "s3://bucket/data")


@pytest.fixture(autouse=True)
def impatient(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("400 Bad Request\n<Error><Code>ExpiredToken</Code></Error>", r"not valid any more \(ExpiredToken\); renew them"),
        ("403 Forbidden\n<Error><Code>ExpiredToken</Code></Error>", r"not valid any more \(ExpiredToken\); renew them"),
        (
            "400 Bad Request\n<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; "
            "expecting 'eu-west-1'</Message></Error>",
            "the bucket lies in eu-west-1: set AWS_DEFAULT_REGION=eu-west-1",
        ),
        ("301 Moved Permanently\n<Error><Code>PermanentRedirect</Code></Error>", r"lies in [-\w]+: set AWS_DEFAULT_REGION="),
        ("403 Forbidden\n<Error><Code>SignatureDoesNotMatch</Code></Error>", r"access was refused \(SignatureDoesNotMatch\)"),
    ],
)
def test_a_refusal_of_s3_says_what_to_do(answer: str, words: str, door: Door) -> None:
    door.fault = lambda method, path: answer if "/X/" in path or "zarr.json" in path else ""
    with pytest.raises(UsageError, match=words) as caught:
        dfeas.solve("s3://bucket/data")
    assert "s3://bucket/data" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_data_that_may_not_be_listed_is_read(door: Door) -> None:
    door.fault = lambda method, path: "deny" if path in ("/bucket", "/bucket/") else ""
    assert dfeas.solve("s3://bucket/data").verdict == "feasible"
    with pytest.raises(UsageError, match=r"the list of objects was refused \(AccessDenied\).*right to list"):
        list(ObjectPath.of("s3://bucket/data").objects())


def test_public_data_is_read_unsigned_and_from_the_web(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = boto3.client("s3")
    generate(Instance("planted", 5, 700, 0.1, block_rows=100), "s3://bucket/public", shard=3 * (100 * 5 * 4 + 4))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    np.savez(tmp_path / "a.npz", X=X, y=(X[:, 0] > 0).astype(int))
    ObjectPath.of("s3://bucket/public/a.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    for each in signed.list_objects_v2(Bucket="bucket", Prefix="public/")["Contents"]:
        signed.put_object_acl(Bucket="bucket", Key=each["Key"], ACL="public-read")
    expected = dfeas.solve("s3://bucket/public")
    web = f"{os.environ['AWS_ENDPOINT_URL']}/bucket/public"
    assert web.startswith("http://127.0.0.1:")
    found = dfeas.solve(web)
    assert (found.margin_lower, found.fingerprint) == (expected.margin_lower, expected.fingerprint)
    assert ingest(f"{web}/a.npz", tmp_path / "web").fingerprint == ingest(tmp_path / "a.npz", tmp_path / "here").fingerprint
    with pytest.raises(UsageError, match="what is on the web is only read"):
        generate(Instance("planted", 5, 700, 0.1), f"{web}/new")
    with pytest.raises(UsageError, match="what is on the web is only read"):
        dfeas.solve("s3://bucket/public", out="http://127.0.0.1:1/run")  # nobody is asked
    with pytest.raises(DfeasError, match=r"no such file or folder|refused"):
        dfeas.solve(f"{web}/nothing")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    object_store.store_of.cache_clear()
    door.reset()
    assert dfeas.solve("s3://bucket/public").margin_lower == expected.margin_lower
    assert not door.signed


def test_names_of_fsspec_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "mine")
    for given, meant in {
        "gcs://bucket/a": "gs://bucket/a",
        "abfs://box/a": "az://box/a",
        "abfss://box@mine.dfs.core.windows.net/a": "az://box/a",
    }.items():
        assert str(ObjectPath.of(given)) == meant
    with pytest.raises(UsageError, match="set AZURE_STORAGE_ACCOUNT_NAME=other"):
        ObjectPath.of("abfss://box@other.dfs.core.windows.net/a")
    for secret in ("https://name:secret@host/a", "https://host/a?sig=secret", "s3://key:secret@bucket/a", "az://secret@box/a"):
        with pytest.raises(UsageError, match="without credentials in it") as caught:
            ObjectPath.of(secret)
        assert "secret" not in str(caught.value)


@pytest.fixture(scope="module")
def azurite() -> Iterator[str]:
    """The endpoint of a server of Azure's blobs with the container ``box``."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite is not installed: npm install -g azurite")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--blobPort", str(port), "--silent", "--inMemoryPersistence", "--disableTelemetry"]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                make_container(endpoint)
                break
            except OSError:
                assert time.monotonic() < deadline
                assert process.poll() is None
        yield endpoint
    finally:
        process.terminate()
        process.wait()


def make_container(endpoint: str) -> None:
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", "Content-Length": "0"}
    said = f"x-ms-date:{headers['x-ms-date']}\nx-ms-version:2021-08-06\n/{ACCOUNT}/{ACCOUNT}/box\nrestype:container"
    digest = hmac.new(base64.b64decode(KEY), f"PUT{12 * chr(10)}{said}".encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/box?restype=container", None, headers, method="PUT")):
        pass


def test_azure_is_written_and_read_also_by_http(azurite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCOUNT_NAME": ACCOUNT, "ACCOUNT_KEY": KEY, "ENDPOINT": azurite}.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0")
    object_store.store_of.cache_clear()
    for shard in (None, 3 * (100 * 5 * 4 + 4)):
        where = f"az://box/{shard}"
        generate(Instance("planted", 5, 700, 0.1, block_rows=100), where, shard=shard)
        generate(Instance("planted", 5, 700, 0.1, block_rows=100), tmp_path / str(shard), shard=shard)
        expected = dfeas.solve(tmp_path / str(shard))
        for url in (where, where.replace("az:", "abfs:"), f"abfss://box@{ACCOUNT}.dfs.core.windows.net/{shard}"):
            assert dfeas.solve(url).margin_lower == expected.margin_lower
    with pytest.raises(BadInputError, match="no such bucket"):
        dfeas.solve("az://nobox/data")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"another key").decode())
    object_store.store_of.cache_clear()
    with pytest.raises(UsageError, match=r"refused .*check the credentials"):
        dfeas.solve("az://box/None")
    object_store.store_of.cache_clear()

"""A server that speaks S3 on loopback, with faults: moto behind a door that is slow, silent, refuses, breaks off, or counts."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from dfeas.data.storage import object_store

NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED")
SECRET = "not-to-be-shown"


class Door:
    """What a request meets before moto. ``fault`` says ``refuse``, ``deny``, ``break``, ``hang``, ``flip``, ``short`` or
    nothing for a method, and a path with its range; or a status and a body that are answered.
    """

    def __init__(self) -> None:
        self.app = create_backend_app("s3")
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], str] = lambda method, path: ""
        self.delay = 0.0
        self.opened = threading.Event()  # until then who hangs does, which is at most until the next reset
        self.busy = self.most_busy = self.signed = 0
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            self.requests.append((method, path))
            self.signed += "HTTP_AUTHORIZATION" in environ
            self.busy += 1
            self.most_busy = max(self.busy, self.most_busy)
        try:
            time.sleep(self.delay)
            fault = self.fault(method, f"{path} {environ.get('HTTP_RANGE', '')}".strip())
            if fault == "hang":
                self.opened.wait(60)
            if fault[:3].isdigit():
                status, _, body = fault.partition("\n")
                start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
                return [body.encode()]
            if fault in ("refuse", "deny"):
                code = "503 Slow Down" if fault == "refuse" else "403 Forbidden"
                start(code, [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code></Error>" if fault == "deny" else b""]
            if fault in ("flip", "short"):
                return self._changed(environ, start, fault)
            if fault == "lose":  # what was asked for is done, and is not said
                list(self.app(environ, lambda *head: None))
                start("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", "0")])
                return [b""]
            whole = self.app(environ, start)
            if fault == "break":
                content = b"".join(whole)
                return [content[: len(content) // 2]]  # and the connection is closed
            return whole
        finally:
            with self._lock:
                self.busy -= 1

    def _changed(self, environ: dict[str, Any], start: Callable[..., Any], fault: str) -> Iterable[bytes]:
        """An answer with another bit in its middle, or half of one with headers that agree."""
        said: list[Any] = []
        content = bytearray(b"".join(self.app(environ, lambda *head: said.extend(head))))
        if not content or said[0][0] != "2":
            fault = ""
        else:
            content[len(content) // 2] ^= 1
        content = content if fault != "short" else content[: len(content) // 2]
        headers = [each for each in said[1] if each[0].lower() != "content-length"]
        start(said[0], [*headers, ("Content-Length", str(len(content)))])
        return [bytes(content)]

    def reset(self) -> None:
        self.opened.set()
        self.opened = threading.Event()
        self.requests.clear()
        self.fault, self.delay, self.most_busy, self.signed = (lambda method, path: ""), 0.0, 0, 0

    def count(self, method: str, part: str) -> int:
        return sum(method == m and part in p for m, p in self.requests)


class Silent(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *words: Any) -> None:
        """Nothing."""


@contextmanager
def serving() -> Iterator[tuple[Door, dict[str, str]]]:
    """A server with the bucket ``bucket``; yields its door and the environment that leads to it, which is set here."""
    door = Door()
    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Silent)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    values = dict(zip(NAMES, (f"http://127.0.0.1:{server.server_port}", "key", SECRET, "us-east-1", "true"), strict=True))
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    object_store.store_of.cache_clear()
    s3_backends.reset()  # of a server before it in this process
    boto3.client("s3").create_bucket(Bucket="bucket")
    try:
        yield door, values
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        object_store.store_of.cache_clear()
        server.shutdown()
        server.server_close()
        thread.join()


def lead(client: Any, values: dict[str, str]) -> None:
    """Workers, who may have asked another server before, ask this one from now on."""

    def follow() -> None:
        os.environ.update(values)
        object_store.store_of.cache_clear()

    client.run(follow)

"""An S3 server (moto) whose answers are as bad as it is told: ``python store.py HOST`` prints its port."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import boto3
from botocore.exceptions import ClientError

SLOW_DOWN = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
EXPIRED = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
DENIED = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
STATUS = {503: "503 Slow Down", 400: "400 Bad Request", 403: "403 Forbidden"}

Start = Callable[..., Any]


class Door:
    """What a request meets before moto: the rule that was posted last, for each nth of the requests that it matches."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.app = app
        self.rule: dict[str, Any] = {}
        self.seen: list[tuple[str, str, str]] = []  # method, path with query, fault
        self.matched = 0
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
        if path.startswith("/-/"):
            return self._obey(environ, path, start)
        rule = self.rule
        with self.lock:
            fault = ""
            if rule and method in rule["methods"] and rule["match"] in path:
                self.matched += 1
                if rule["times"] and self.matched % rule["every"] == 0:
                    rule["times"] -= 1
                    fault = rule["kind"]
            self.seen.append((method, path, fault))
        if fault == "hang":
            time.sleep(1000)
        if fault == "status":
            start(STATUS[rule["status"]], [("Content-Type", "application/xml")])
            return [rule["body"].encode()]
        return self._spoil(environ, start, fault) if fault else self.app(environ, start)

    def _obey(self, environ: dict[str, Any], path: str, start: Start) -> Iterable[bytes]:
        if path.startswith("/-/rule"):
            self.rule = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        with self.lock:
            if self.rule and path.startswith("/-/rule"):
                self.seen.clear()
            answer = json.dumps(self.seen).encode()
        start("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]

    def _spoil(self, environ: dict[str, Any], start: Start, fault: str) -> Iterable[bytes]:
        said: list[Any] = []
        content = b"".join(self.app(environ, lambda status, headers, *_: said.extend((status, headers))))
        size = len(content)
        if fault in ("half", "short"):  # the connection breaks; or the server says that half is all
            content = content[: size // 2]
        elif fault == "flip" and content:
            content = content[: size // 2] + bytes([content[size // 2] ^ 1]) + content[size // 2 + 1 :]
        headers = [(name, value) for name, value in said[1] if name.lower() != "content-length"]
        start(said[0], [*headers, ("Content-Length", str(len(content) if fault == "short" else size))])
        return [content]


def serve(host: str) -> None:
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *words: Any) -> None:
            """Nothing."""

    server = make_server(host, 0, Door(create_backend_app("s3")), threaded=True, request_handler=Silent)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


class Store:
    """The server from outside."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.env = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        named = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        self.client = boto3.client("s3", endpoint_url=url, **named)

    def spoil(self, kind: str, match: str, every: int = 1, times: int = -1, **answer: Any) -> None:
        """Each nth answer from now on, so many times or always; ``match`` is a part of path and query.

        ``answer`` is what the kind ``status`` says.
        """
        rule = {"methods": ["GET", "HEAD"], "status": 503, "body": SLOW_DOWN, **answer}
        self._post({"kind": kind, "match": match, "every": every, "times": times, **rule})

    def deny_listing(self) -> None:
        self.spoil("status", "list-type", status=403, body=DENIED)
        try:
            self.client.list_objects_v2(Bucket="bucket")
        except ClientError:
            return
        raise AssertionError("objects can still be listed: the trial says nothing")

    def read(self, url: str) -> bytes:
        """An object; empty where there is none."""
        bucket, key = url.removeprefix("s3://").split("/", 1)
        with suppress(ClientError):
            return bytes(self.client.get_object(Bucket=bucket, Key=key)["Body"].read())
        return b""

    def mend(self) -> None:
        self._post({})

    def _post(self, rule: dict[str, Any]) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/-/rule", json.dumps(rule).encode(), method="POST")).close()

    def count(self, method: str, part: str, fault: str = "") -> int:
        """Requests since the last rule: of a method, for paths with this part, that met this fault or, without one, any."""
        with urllib.request.urlopen(f"{self.url}/-/seen") as answer:
            return sum(m == method and part in path and fault in met for m, path, met in json.load(answer))


@contextmanager
def serving(host: str) -> Iterator[Store]:
    """A server with the bucket ``bucket``."""
    process = subprocess.Popen([sys.executable, __file__, host], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        store = Store(f"http://{host}:{int(process.stdout.readline())}")
        store.client.create_bucket(Bucket="bucket")
        yield store
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    serve(sys.argv[1])

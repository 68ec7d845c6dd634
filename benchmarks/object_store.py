"""A pass over a dataset in an object store against plain requests for the same objects.

    python benchmarks/object_store.py --mb 400 --latency 0,20

An S3 server (moto) in another process on loopback, which may wait some milliseconds before each answer, as a distant one does.
A pass of the smooth perceptron's question by two threads, with 1 to 32 requests under way, against as many threads that ask
for the same objects by obstore and drop them; then from the cache on disk. "Share" is the speed of the pass as a share of the
plain requests', the median over turns, in turns. Also what a share of refused requests (503) costs, and passes over the same
blocks in shards, by ranged requests, beside passes over objects of one block.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import boto3
import numpy as np
import obstore
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage import object_path
from dfeas.data.storage.object_path import ObjectPath
from dfeas.engine.local import LocalEngine
from dfeas.passes.softmin import Softmin

URL = "s3://bucket/data"


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *words: Any) -> None:
        """Nothing."""


def serve() -> None:
    """An S3 server that waits and refuses as a request for ``/-/SECONDS/EVERY`` said last; prints its port."""
    wait, refused = 0.0, 0
    app, count = create_backend_app("s3"), iter(range(1 << 60))
    objects: dict[str, tuple[bytes, str, list[tuple[str, str]]]] = {}
    lock = threading.Lock()

    def door(environ: dict[str, Any], start: Any) -> Any:
        nonlocal wait, refused
        path = environ["PATH_INFO"]
        if path.startswith("/-/"):
            wait, refused = float(path.split("/")[2]), int(path.split("/")[3])
            start("200 OK", [])
            return [b""]
        time.sleep(wait)
        if refused and "/X/c." in path and environ["REQUEST_METHOD"] == "GET" and next(count) % refused == 0:
            start("503 Slow Down", [])
            return [b""]
        if environ["REQUEST_METHOD"] != "GET" or "/X/c." not in path:
            return app(environ, start)
        # moto's own work for each byte would be all that is measured: blocks are answered as it answered first
        with lock:
            asked = environ.pop("HTTP_RANGE", "")
            if path not in objects:
                said: list[Any] = []
                content = b"".join(app(environ, lambda status, headers, *_: said.extend((status, headers))))
                objects[path] = content, said[0], said[1]
        content, status, headers = objects[path]
        if asked:
            content, status, headers = ranged(content, asked, headers)
        start(status, headers)
        return [content]

    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


def ranged(content: bytes, asked: str, headers: list[tuple[str, str]]) -> tuple[bytes, str, list[tuple[str, str]]]:
    """The answer to a request for some bytes."""
    first, _, last = asked.removeprefix("bytes=").partition("-")
    begin, end = (int(first), min(len(content), int(last) + 1)) if first else (len(content) - int(last), len(content))
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    more = [("Content-Length", str(end - begin)), ("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")]
    return content[begin:end], "206 Partial Content", [*kept, *more]


def plain(names: list[str], threads: int) -> float:
    """Seconds of plain requests by so many threads."""
    folder = ObjectPath.of(URL)
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        size = sum(pool.map(lambda name: len(obstore.get(folder.store, f"{folder.key}/X/{name}").bytes()), names))
        assert size
        return time.perf_counter() - began


def passes(engine: LocalEngine, m: int) -> float:
    """Seconds of a pass."""
    engine.run(Softmin(np.full((m, 1), m**-0.5), np.ones(1)))
    return engine.cost.wall_seconds


def measure(mb: int, m: int, latencies: list[float], requests: list[int], turns: int, server: str) -> None:
    n = mb * 1_000_000 // (4 * m)
    header = generate(Instance("planted", m, n, 0.05), URL)
    names = [f"c.{i}.0" for i in range(-(-n // header.block_rows))]
    print(f"{n} points of {m} features, {len(names)} objects; {turns} turns after one to warm up\n")
    print("| latency ms | requests under way | refused | plain MB/s | pass MB/s | share |")
    print("|---|---|---|---|---|---|")
    size = 4 * m * n / 1e6
    for latency in latencies:
        for most in requests:
            for every in (0, 10) if most == max(requests) else (0,):
                urllib.request.urlopen(f"{server}/-/{latency / 1000}/{every}").close()
                object_path.REQUESTS = most
                object_path.pool.cache_clear()
                engine = LocalEngine(open_source(Source(DataSpec(URL, intercept=False))), 2)
                both = [(plain(names, most), passes(engine, m)) for _ in range(turns + 1)][1:]
                engine.close()
                share = median(a / b for a, b in both)
                theirs, ours = (size / median(times) for times in zip(*both, strict=True))
                shown = f"1 of {every}" if every else "none"
                print(f"| {latency:g} | {most} | {shown} | {theirs:.0f} | {ours:.0f} | {share:.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        engine = LocalEngine(open_source(Source(DataSpec(URL, intercept=False), cache_dir=folder)), 2)
        times = [passes(engine, m) for _ in range(turns + 1)][1:]
        engine.close()
        print(f"| {latencies[-1]:g} | from the cache on disk | none | | {size / median(times):.0f} | |")


def shards(mb: int, m: int, latencies: list[float], turns: int, server: str) -> None:
    """Passes over the same blocks in objects of ten, in turns."""
    instance = Instance("planted", m, mb * 1_000_000 // (4 * m), 0.05)
    urllib.request.urlopen(f"{server}/-/0/0").close()
    generate(instance, f"{URL}-shards", shard=10 * (4 * m * instance.rows + 4))
    print("\n| latency ms | a block an object MB/s | ten MB/s | ratio |")
    print("|---|---|---|---|")
    for latency in latencies:
        urllib.request.urlopen(f"{server}/-/{latency / 1000}/0").close()
        engines = [LocalEngine(open_source(Source(DataSpec(url, intercept=False))), 2) for url in (URL, f"{URL}-shards")]
        both = [[passes(engine, m) for engine in engines] for _ in range(turns + 1)][1:]
        for engine in engines:
            engine.close()
        one, ten = (4 * m * instance.n / 1e6 / median(times) for times in zip(*both, strict=True))
        print(f"| {latency:g} | {one:.0f} | {ten:.0f} | {median(a / b for a, b in both):.2f} |", flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=400)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--latency", default="0,20", help="milliseconds")
    parser.add_argument("--requests", default="1,4,16,32")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args(words)
    if options.serve:
        serve()
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        about = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "key", "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ.update(about, AWS_ENDPOINT_URL=url)
        boto3.client("s3").create_bucket(Bucket="bucket")
        latencies = [float(v) for v in options.latency.split(",")]
        requests = [int(v) for v in options.requests.split(",")]
        measure(options.mb, options.features, latencies, requests, options.turns, url)
        shards(options.mb, options.features, latencies, options.turns, url)
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main()

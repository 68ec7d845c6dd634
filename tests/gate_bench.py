"""What a run of the gate stands on: folders of data, the command line in this process, a cluster; and the record of a run."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shlex
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import numpy as np

READABLE = ("exit", "verdict", "stop", "proof", "passes")
BITS = ("bracket", "certificate", "answer")
RESULT = ("verdict", "stopped", "proof", "passes", "margin_lower", "margin_upper", "y", "support", "weights", "path")

PLACES = {
    "data",
    "certificate",
    "path",
    "folder",
    "out",
    "run",
    "format",
    "versions",
    "bits",
    "workers",
    "task",
    "id",
    "asked",
    "user",
    "host",
}
TIMES = {"began", "seconds", "first_seconds", "later_seconds", "value_seconds", "checkpoint_age"}
COSTS = {"memory_bytes", "bytes_read", "threads"}
SENTENCES = {"why", "detail", "message", "remark", "notes"}
LEFT_OUT = PLACES | TIMES | COSTS | SENTENCES
"""Keys of JSON that are no part of an answer."""


def canonical(value: Any) -> Any:
    """Plain JSON that differs when bits of a value do; 1 and 1.0 are the same."""
    if isinstance(value, np.ndarray | np.generic):
        numbers = value.dtype.kind in "biuf" and value.ndim > 0
        return [value.dtype.str, value.shape, value.tobytes().hex()] if numbers else canonical(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): canonical(entry) for key, entry in value.items() if key not in LEFT_OUT}
    if isinstance(value, list | tuple):
        return [canonical(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value.hex()
    return value


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(canonical(value), sort_keys=True).encode()).hexdigest()[:12]


def arrays(path: Path) -> Iterator[tuple[str, Any]]:
    """Names and content of a certificate; text that is JSON is parsed."""
    with np.load(path, allow_pickle=False) as held:
        for name in held.files:
            text = str(held[name]) if held[name].dtype.kind == "U" else ""
            yield name, json.loads(text) if text.startswith("{") else held[name]


@dataclass
class Record:
    """What came of a run: an entry for each command, and for each result."""

    exit: list[int] = field(default_factory=list)
    verdict: list[Any] = field(default_factory=list)
    stop: list[Any] = field(default_factory=list)
    proof: list[Any] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    bracket: list[Any] = field(default_factory=list)
    certificate: list[Any] = field(default_factory=list)
    answer: list[Any] = field(default_factory=list)

    def result(self, values: Mapping[str, Any], evidence: Any) -> None:
        """The keys of ``result.json``, and arrays."""
        self.verdict.append(values.get("verdict", values.get("kind")))
        self.stop.append(values["stopped"])
        self.proof.append(values.get("proof"))
        self.passes += [float(values["passes"])] if "passes" in values else []
        self.bracket.append([values.get(name) for name in ("margin_lower", "margin_upper", "lower", "objective")])
        self.certificate.append(evidence)
        self.answer.append(values)

    def kind(self, values: Mapping[str, Any]) -> None:
        """Of separation."""
        self.verdict.append(values["kind"])
        self.proof.append(values["proof"])
        self.answer.append(values)

    def returned(self, found: Any) -> None:
        """What README promises of a result, or of one for each name."""
        for one in getattr(found, "results", {"": found}).values():
            self.answer.append([getattr(one, name, None) for name in RESULT])

    def files(self, folder: Path) -> None:
        """What the runs in a folder wrote."""
        for path in sorted(folder.rglob("*.*")):
            if path.name == "result.json":
                evidence = path.with_name("certificate.npz")
                self.result(json.loads(path.read_text()), dict(arrays(evidence)) if evidence.exists() else None)
            elif path.name == "separation.json":
                self.kind(json.loads(path.read_text()))
            elif path.name in ("race.json", "margin.json"):
                self.answer.append(json.loads(path.read_text()))
            elif path.suffix == ".npy":
                self.answer.append(np.load(path))

    def row(self) -> dict[str, str]:
        """Its line of the table."""
        words = {name: (f"{v:.9g}" if isinstance(v, float) else str(v) for v in getattr(self, name)) for name in READABLE}
        bits = {name: digest(getattr(self, name)) if getattr(self, name) else "" for name in BITS}
        return {name: ", ".join(entries) for name, entries in words.items()} | bits


def commands() -> click.Group:
    """The command line that pyproject.toml names, whatever is installed."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    found: click.Group = EntryPoint("dfeas", project["entry-points"]["dask_cli"]["dfeas"], "dask_cli").load()
    return found


class Bench:
    """Data, made when it is first asked for, and a cluster, started likewise."""

    def __init__(self, folder: Path, stack: ExitStack, sources: Mapping[str, str | Callable[[Path], object]]) -> None:
        self.folder, self._stack, self._sources = folder, stack, sources
        self.command = commands()

    @cached_property
    def client(self) -> Any:
        from distributed import Client, LocalCluster

        where: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
        cluster = self._stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, **where))
        return self._stack.enter_context(Client(cluster))

    def data(self, name: str) -> Path:
        path, source = self.folder / "data" / name, self._sources[name]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            if isinstance(source, str):
                self.typed(f"{source} {path}", Record())
            else:
                source(path)
        return path

    def typed(self, line: str, record: Record) -> Any:
        """Carry out ``dfeas LINE --json`` and return what it printed; @NAME is data, @cluster the address of the scheduler."""
        words = [self._word(word) for word in shlex.split(line)]
        words += [] if words[0] == "report" else ["--json"]
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                self.command.main(words, prog_name="dfeas", standalone_mode=False)
            except click.UsageError as error:
                code = error.exit_code
                click.echo(error.format_message(), err=True)
            except SystemExit as ended:
                code = int(ended.code or 0)
        text = out.getvalue() or err.getvalue()
        values = json.loads(text) if out.getvalue() and "--json" in words else self._last(text)
        record.exit.append(code)
        record.answer.append(values)
        return values

    def _last(self, text: str) -> str:
        """Its last line, which says the same in any folder."""
        return text.splitlines()[-1].replace(str(self.folder), "")

    def _word(self, word: str) -> str:
        if word == "@cluster":
            return str(self.client.scheduler.address)
        return str(self.data(word[1:])) if word.startswith("@") else word


Case = Callable[[Bench, Record], None]


def rows(cases: Mapping[str, Case], sources: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Carry out each, in a folder of its own: its name and its line of the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(folder, stack, sources)
        for name, case in cases.items():
            place, record = folder / "runs" / name, Record()
            place.mkdir(parents=True)
            with chdir(place):
                case(bench, record)
            record.files(place)
            yield name, record.row()

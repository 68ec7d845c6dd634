"""The gate: do small runs of every geometry, method and command, on both engines, end as they did, with the same bits?

python tests/gate.py                    compares with tests/gate.json: a line for each run that differs, then exit code 1
python tests/gate.py --only svm/ ..     only runs whose names begin so
python tests/gate.py --write            stores what came out, of these runs or of all

Of each run the table has exit codes, verdicts, reasons of stopping, proofs and passes to be read, and hashes of brackets, of
certificates and of all other answers (predictions, result.json without times, places and sentences). Bits depend on processor
and BLAS: where the table is of another machine, bits that differ are told and are no failure. Nothing is used but the command
line and the names of ``dfeas`` and ``dfeas.estimators``, so that it holds whatever becomes of the modules behind them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before anything loads it
    sys.path[0] = str(Path(__file__).parents[1])

import click
import numpy as np
import scipy.linalg  # the BLAS that it brings is one that bits depend on
from threadpoolctl import threadpool_info

from tests.gate_bench import BITS, READABLE, Case, rows
from tests.gate_data import SOURCES
from tests.gate_runs import CASES

TABLE = Path(__file__).with_suffix(".json")
Row = Mapping[str, str]


def machine() -> dict[str, Any]:
    """What bits depend on."""
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    blas = sorted({f"{lib['internal_api']} {lib['version']} {lib.get('architecture')}" for lib in libraries})
    simd = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {"numpy": np.__version__, "scipy": scipy.__version__, "blas": blas, "simd": simd}


def changes(stored: Row, row: Row) -> tuple[str, str]:
    """What can be read and differs, and the names of bits that differ."""
    words = [f"{name} {stored[name] or '-'} -> {row[name] or '-'}" for name in READABLE if stored[name] != row[name]]
    return "; ".join(words), ", ".join(name for name in BITS if stored[name] != row[name])


def load() -> dict[str, Any]:
    """The table: ``machine``, and ``runs`` by name."""
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


def save(runs: Mapping[str, Row]) -> None:
    """Write the table, a line for each run."""
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(runs.items()))
    TABLE.write_text(f'{{\n  "machine": {json.dumps(machine())},\n  "runs": {{\n{lines}\n  }}\n}}\n')


def compare(cases: Mapping[str, Case]) -> int:
    """Carry out these runs, say what differs, and count those that fail."""
    table, failed, elsewhere = load(), 0, []
    here = machine() == table["machine"]
    for name, row in rows(cases, SOURCES):
        words, bits = changes(table["runs"][name], row) if name in table["runs"] else ("not in the table: --write", "")
        if bits and not here:
            elsewhere.append(name)
            bits = ""
        if words or bits:
            click.echo(f"{name}: {words}{'; ' if words and bits else ''}{f'bits of {bits}' if bits else ''}")
            failed += 1
    if not here:
        click.echo(f"the table is of {table['machine']}, this is {machine()}")
        click.echo(f"bits differ in {len(elsewhere)} runs, which is no failure then: {', '.join(elsewhere)}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store what comes out")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[""], help="beginnings of names")
    asked = parser.parse_args()
    cases = {name: case for name, case in CASES.items() if name.startswith(tuple(asked.only))}
    if not cases:
        parser.error(f"no run begins with {' or '.join(asked.only)}; there are {', '.join(CASES)}")
    began, failed, earlier = time.monotonic(), 0, {}
    if not asked.write:
        failed = compare(cases)
    else:
        if len(cases) < len(CASES):
            if load()["machine"] != machine():
                parser.error("the table is of another machine: write all of it")
            earlier = {name: row for name, row in load()["runs"].items() if name in CASES}
        save(earlier | dict(rows(cases, SOURCES)))
    click.echo(f"{len(cases)} runs, {failed} fail, {time.monotonic() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

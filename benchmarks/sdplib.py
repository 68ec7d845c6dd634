"""Files of semidefinite programmes: what the command line says of each, beside Clarabel and SCS on the same question.

    python benchmarks/sdplib.py FOLDER                       # every .dat-s and .dat-s.gz of a folder, such as that of SDPLIB
    python benchmarks/sdplib.py FOLDER --only mcp,theta --most-mb 1 --peers Clarabel,SCS --memory 2GB --seconds 60
    python benchmarks/sdplib.py --order 40                   # small files like them, made for it

Asked is whether some x makes x_1 F_1 + .. + x_m F_m - F_0 positive definite, as ``dfeas ingest`` asks it: X y inside the cones.
Peers get the rows that dfeas ingests, each cone over its norm:  max t  such that  X y - t e in K,  -1 <= y_i <= 1,  Clarabel
with its own tolerances, SCS to 1e-6. Each contestant has a process of its own with one thread, so much memory beyond an idle
one, and so much time. Seconds are of the processor, without imports; those of peers are without reading the file, too.
``x faster`` is the seconds of the fastest peer that answered over those of dfeas.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
import scs

import dfeas
from dfeas.cones.algebra import cone_norms, groups_of, unit
from dfeas.cones.product import Placing, Product
from dfeas.cones.sdpa import ingest_cones, read_sdpa
from dfeas.data.ingest.options import SDPA
from dfeas.settings import parse_bytes

PEERS = ("Clarabel", "SCS")
KINDS = ("mcp", "theta", "gpp", "infeasible", "hinf", "arch")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="beginnings of names")
    parser.add_argument("--most-mb", type=float, default=1e9, help="of a file")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--eps", default="1e-6", help="of dfeas solve")
    parser.add_argument("--order", type=int, default=20, help="of matrices that are made, where no folder is given")
    parser.add_argument("--alone", default="", help="only: one contestant, with the file FOLDER")
    options = parser.parse_args(words)
    if options.alone:
        alone(options)
    elif options.folder is not None:
        table(options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            options.folder = Path(folder)
            for seed, kind in enumerate(KINDS):
                write(options.folder / f"{kind}.dat-s", *made(kind, options.order, np.random.default_rng(seed)))
            table(options)


def table(options: argparse.Namespace) -> None:
    """A line for each file."""
    peers = [name for name in options.peers.split(",") if name]
    beginnings = tuple(options.only.split(","))
    files = [path for path in options.folder.iterdir() if path.name.endswith(SDPA) and path.name.startswith(beginnings)]
    heads = [
        "file",
        "order",
        "variables",
        "verdict",
        "margin",
        "MB",
        "MB/s read",
        "s",
        *(f"{name}, s" for name in peers),
        "x faster",
    ]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for path in sorted(files, key=lambda path: path.stat().st_size):
        if path.stat().st_size > options.most_mb * 1e6:
            continue
        own = asked("dfeas", path, options)
        cells = [
            path.name.split(".")[0],
            *(own.get(name, "") for name in ("order", "variables", "verdict", "margin", "memory")),
        ]
        cells += [own.get("rate", ""), seconds(own)]
        theirs = [asked(name, path, options) for name in peers]
        cells += [f"{seconds(told)} ({told['margin']:.3g})" if "margin" in told else told["ended"] for told in theirs]
        fastest = min((told["seconds"] for told in theirs if "seconds" in told), default=None)
        cells.append("" if fastest is None or "seconds" not in own else f"{fastest / own['seconds']:.2g}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def seconds(told: dict[str, Any]) -> str:
    return f"{told['seconds']:.2f}" if "seconds" in told else str(told["ended"])


def asked(name: str, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What a contestant told, or how it ``ended``."""
    words = [sys.executable, __file__, str(path), "--alone", name, "--memory", options.memory, "--eps", options.eps]
    words += ["--seconds", str(options.seconds)]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=4 * options.seconds + 30, env={**os.environ, **threads}
        )
    except subprocess.TimeoutExpired:
        return {"ended": "time"}
    if done.returncode == 0:
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode == -24:  # SIGXCPU
        return {"ended": "time"}
    return {"ended": "memory" if done.returncode < 0 or any(word in last for word in ("emory", "llocat")) else last[-100:]}


def alone(options: argparse.Namespace) -> None:
    """One contestant, with limits from now on. What loads when it is used is loaded by a problem of one entry."""
    tiny = sp.csr_array(np.ones((2, 1)))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "tiny.dat-s", [[np.zeros((2, 2))], [np.eye(2)]], "feasible")
        ingest_cones(Path(folder) / "tiny.dat-s", Path(folder) / "data")
        dfeas.solve(Path(folder) / "data")
    for peer in (by_clarabel, by_scs):
        peer(tiny, Product.from_scs({"l": 2}))
    path, idle = options.folder, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    allowed = round(process_time() + options.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed + 9))  # at the second one a process is killed, as without memory
    if options.alone == "dfeas":
        told = by_dfeas(path, options)
    else:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + parse_bytes(options.memory),) * 2)
        X, cone = scaled(path)
        began = process_time()
        margin = {"Clarabel": by_clarabel, "SCS": by_scs}[options.alone](X, Product.from_scs(cone))
        took = process_time() - began
        told = {"ended": "no answer"} if margin is None else {"margin": margin, "seconds": took}
    told["memory"] = round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle) / 1000)
    print(json.dumps(told))


def by_dfeas(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Ingested and solved as the command line does."""
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        try:
            header = ingest_cones(path, Path(folder) / "data")
            read, began = process_time() - began, process_time()
            assert header.cones is not None
            order = max(size if kind == "s" else 1 for kind, size, _ in header.cones.counts)
            told = {"order": order, "variables": header.m, "rate": f"{path.stat().st_size / 1e6 / read:.1f}"}
            result = dfeas.solve(
                Path(folder) / "data", memory=options.memory, eps=float(options.eps), time_limit=options.seconds
            )
        except dfeas.DfeasError as error:
            return {"ended": str(error), "verdict": "refused"}
        margin = result.margin_lower if result.verdict == "feasible" else result.margin_upper
        proof = f" ({result.proof})" if result.proof else ""
        return {**told, "verdict": f"{result.verdict}{proof}", "margin": f"{margin:.3g}", "seconds": process_time() - began}


def scaled(path: Path) -> tuple[sp.csr_array, dict[str, Any]]:
    """Rows over the norms of their cones, and the cones."""
    X, cone = read_sdpa(path)
    X = sp.csr_array(X)
    norm = cone_norms(X, Placing(Product.from_scs(cone), X.shape[0]).label)
    return sp.csr_array(sp.diags_array(1 / np.where(norm > 0, norm, 1.0)) @ X), cone


def program(X: sp.csr_array, product: Product, place: np.ndarray, first: int) -> tuple[sp.csc_array, np.ndarray, np.ndarray]:
    """Rows in an order, those of the box after the first ones; right-hand side, and cost."""
    n, m = X.shape
    e = np.concatenate([np.tile(unit(kind, size), many) for kind, size, many in product.runs])
    inside = sp.csr_array(sp.hstack([-X, sp.csr_array(e[:, None])]))[place]
    box = sp.hstack([sp.vstack([sp.eye_array(m), -sp.eye_array(m)]), sp.csr_array((2 * m, 1))])
    rows = sp.vstack([inside[:first], box, inside[first:]])
    right = np.concatenate([np.zeros(first), np.ones(2 * m), np.zeros(n - first)])
    return sp.csc_array(rows), right, np.append(np.zeros(m), -1.0)


def by_clarabel(X: sp.csr_array, product: Product) -> float | None:
    """Interior points; upper triangles by columns are lower ones by rows."""
    m, cones, order = X.shape[1], [], []
    for group in groups_of(Placing(product, X.shape[0]).label):
        rows = group.rows()
        if group.kind == "s":
            upper = np.zeros((group.size, group.size), int)
            upper[np.triu_indices(group.size)] = np.arange(group.dimension)
            rows = rows[:, upper.T[np.tril_indices(group.size)]]
            cones += [clarabel.PSDTriangleConeT(group.size)] * len(rows)
        else:
            cones.append(clarabel.NonnegativeConeT(len(rows)))
        order.append(rows.reshape(-1))
    A, b, c = program(X, product, np.concatenate(order), X.shape[0])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    cones.append(clarabel.NonnegativeConeT(2 * m))
    solution = clarabel.DefaultSolver(sp.csc_matrix((m + 1, m + 1)), c, sp.csc_matrix(A), b, cones, settings).solve()
    return -solution.obj_val if str(solution.status) in ("Solved", "AlmostSolved") else None


def by_scs(X: sp.csr_array, product: Product) -> float | None:
    """Splitting."""
    linear, large = [], []  # rows, first row and size; a matrix of order 1 is an entry of the orthant, wherever it stands
    for group in groups_of(Placing(product, X.shape[0]).label):
        if group.kind == "s":
            large += [(int(start), group.size, rows) for start, rows in zip(group.starts, group.rows(), strict=True)]
        else:
            linear.append(group.rows().reshape(-1))
    large.sort(key=lambda cone: cone[0])
    first = np.concatenate(linear)
    A, b, c = program(X, product, np.concatenate([first, *(rows for _, _, rows in large)]), len(first))
    table = {"l": len(first) + 2 * X.shape[1], "s": [size for _, size, _ in large]}
    data = {"A": sp.csc_matrix(A), "b": b, "c": c}
    found = scs.SCS(data, table, verbose=False, eps_abs=1e-6, eps_rel=1e-6, max_iters=100_000).solve()
    return -found["info"]["pobj"] if found["info"]["status"] == "solved" else None


Matrices = list[list[np.ndarray]]
"""F_0 .. F_m, each a list of blocks; a vector is a diagonal one."""


def made(kind: str, k: int, rng: np.random.Generator) -> tuple[Matrices, str]:
    """Matrices like those of a family of SDPLIB, of order k, and the answer, which is known: feasible or infeasible."""
    units, none = [np.diag(each) for each in np.eye(k)], np.zeros((k, k))
    S = rng.standard_normal((3 * k, k, k))
    S += np.swapaxes(S, 1, 2)
    if kind == "mcp":  # maximum cut
        cut = -np.triu(rng.random((k, k)) < 3 / k, 1).astype(float)
        cut += cut.T
        return [[each] for each in (cut - np.diag(cut.sum(axis=1)), *units)], "feasible"
    if kind == "theta":  # Lovasz
        edges = np.argwhere(np.triu(rng.random((k, k)) < 0.3, 1))
        pairs = [np.zeros((k, k)) for _ in edges]
        for each, (i, j) in zip(pairs, edges, strict=True):
            each[i, j] = each[j, i] = 1.0
        return [[each] for each in (np.ones((k, k)), np.eye(k), *pairs)], "feasible"
    if kind == "gpp":  # equipartition
        return [[each] for each in (S[0], np.ones((k, k)), *units)], "feasible"
    if kind == "infeasible":  # every F_i is across to a positive definite X, and F_0 adds to it
        G = rng.standard_normal((k, k))
        X = G @ G.T / k + np.eye(k)
        across = S[: k // 2] - (S[: k // 2] * X).sum(axis=(1, 2))[:, None, None] * X / (X * X).sum()
        return [[each] for each in (np.eye(k), *across)], "infeasible"
    if kind == "hinf":  # a small margin
        thin = np.diag(np.linspace(1e-4, 1.0, k))
        turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
        return [[none], [turn @ thin @ turn.T], *([each] for each in S[:5])], "feasible"
    bars = [[np.outer(v, v), -rng.random(k)] for v in rng.standard_normal((2 * k, k)) * (rng.random((2 * k, k)) < 4 / k)]
    return [[none, -4.0 * k * np.ones(k)], *bars, [np.eye(k), np.zeros(k)]], "feasible"


def write(path: Path, matrices: Matrices, answer: str) -> None:
    """A sparse file of SDPA."""
    sizes = [len(block) if block.ndim == 2 else -len(block) for block in matrices[0]]
    lines = [
        f'"{answer}',
        str(len(matrices) - 1),
        str(len(sizes)),
        " ".join(map(str, sizes)),
        " ".join("0" * (len(matrices) - 1)),
    ]
    for number, blocks in enumerate(matrices):
        for place, block in enumerate(blocks, 1):
            full = block if block.ndim == 2 else np.diag(block)
            for i, j in np.argwhere(np.triu(full) != 0).tolist():
                lines.append(f"{number} {place} {i + 1} {j + 1} {full[i, j]!r}".replace("np.float64(", "").replace(")", ""))
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

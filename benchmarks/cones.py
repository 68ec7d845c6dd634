"""Cones: verdicts beside Clarabel and SCS, the speed of a pass, and problems larger than memory.

    python benchmarks/cones.py                                        # 2,000 small products of cones, and the speed of passes
    python benchmarks/cones.py --instances 0 --turns 0 --large q:5x1000000 --features 50 --memory 1GB
    python benchmarks/cones.py --instances 0 --turns 0 --large s:6x200000 --features 50 --memory 1GB --peers 20000

Verdicts: random products of l, q and s with a planted y of margin 1e-7 .. 0.3, with a planted x, or at random. The reference is
the best margin: max t, X y - t e in K, |y| <= 1, by Clarabel at its tightest. A bracket that leaves it outside by more than the
reference is accurate is wrong. SCS is asked the same.
Speed: softmin over the eigenvalues of blocks in memory, one thread, beside a bare product X @ y and the bare eigenvalues
(LAPACK's for s, t - |u| for q) of the same blocks. With mu > 0 it multiplies twice: the last column has what all bare parts of
that take, both products, eigenvalues and eigenvectors, exponentials and weights. Turns alternate, figures are medians.
Large: generated with a known answer, solved out of core with the memory given, and verified again. ``--kinds
cones-boundary,cones-scattered --eps 1e-7`` are the hard ones: no average of columns separates, and a conflict is spread over
the data. The first ``--peers`` rows are given to SCS and Clarabel, too, as they need all of them in memory.
Search: the number of cones is doubled until a peer, in a process of its own, exceeds its memory or its time; what it solved
last is solved out of core with the same memory.

    python benchmarks/cones.py --search Clarabel,SCS --large q:5x1000000 --features 50 --peer-memory 1GB --peer-time 60
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
import scs
from threadpoolctl import threadpool_limits

import dfeas
from dfeas.cones.algebra import cone_norms, elements, groups_of, least, matrices, unit
from dfeas.cones.generate import ConeInstance
from dfeas.cones.product import Placing, Product
from dfeas.cones.softmin import SpectralSoftmin
from dfeas.data.generate.points import generate
from dfeas.data.storage.layout import BLOCK_BYTES
from dfeas.passes.block import Block
from dfeas.settings import parse_bytes

PEERS = ("Clarabel", "SCS")
ACCURATE = 2e-7
"""Of the reference, relative to its scale of 1."""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--block-mb", type=float, default=BLOCK_BYTES / 2**20)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--large", default=None, help="cones of a problem larger than memory")
    parser.add_argument("--kinds", default="cones,cones-infeasible", help="of dfeas generate")
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--eps", type=float, default=1e-3)
    parser.add_argument("--max-passes", type=int, default=2000)
    parser.add_argument("--time-limit", type=float, default=None, help="seconds of each run")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--methods", default="auto,mirror-prox-one-pass")
    parser.add_argument("--peers", type=int, default=20_000, help="rows that SCS and Clarabel get")
    parser.add_argument("--search", default=None, metavar="NAMES", help="only: the most cones that these peers can hold")
    parser.add_argument("--most", type=int, default=None, help="cones of a search")
    parser.add_argument("--peer-memory", default="1GB", help="of a peer, beyond an idle process")
    parser.add_argument("--peer-time", type=float, default=60, help="seconds of a peer for one problem")
    parser.add_argument("--alone", default=None, choices=PEERS, help="only: this peer, with --count cones")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args(words)
    if options.alone is not None:
        alone(options)
        return
    if options.search is not None:
        search(options)
        return
    if options.instances:
        verdicts(range(options.first, options.first + options.instances))
    with threadpool_limits(1):
        if options.turns:
            speed(options.features, options.blocks, options.turns, round(options.block_mb * 2**20))
    if options.large is not None:
        large(options)


def random_cone(rng: np.random.Generator) -> dict[str, Any]:
    """A small product: one kind, or a mixture."""
    kinds = rng.choice(["l", "q", "s"], size=rng.integers(1, 4), replace=False)
    cone: dict[str, Any] = {}
    if "l" in kinds:
        cone["l"] = int(rng.integers(1, 12))
    if "q" in kinds:
        cone["q"] = rng.integers(1, 7, rng.integers(1, 8)).tolist()
    if "s" in kinds:
        cone["s"] = rng.integers(1, 6, rng.integers(1, 5)).tolist()
    return cone


def elements_of(product: Product) -> np.ndarray:
    """e, of all cones."""
    return np.concatenate([np.tile(unit(kind, size), many) for kind, size, many in product.runs])


def random_problem(seed: int) -> tuple[np.ndarray, dict[str, Any], str]:
    """Rows, cones, and what was planted."""
    rng = np.random.default_rng(seed)
    cone, m = random_cone(rng), int(rng.integers(1, 9))
    product = Product.from_scs(cone)
    e, what = elements_of(product), ("margin", "x", "random")[seed % 3]
    X = rng.standard_normal((len(e), m))
    if what == "margin":
        y = rng.standard_normal(m)
        y /= np.linalg.norm(y)
        X += np.outer(10.0 ** rng.uniform(-7, 0) * e - X @ y, y)
    elif what == "x":
        x = np.zeros(len(e))
        some = rng.random(len(e)) < 0.7
        x[some] = 0.3 * rng.standard_normal(some.sum())
        label = Placing(product, product.table.rows).label
        for group in groups_of(label):
            rows = group.rows()
            low = least(group.kind, group.size, x[rows])
            x[rows] += np.maximum(0, -low)[:, None] * unit(group.kind, group.size)
        x = x if x.any() else e
        X -= np.outer(x, x @ X) / (x @ x)
    return X * 10.0 ** rng.uniform(-3, 3), cone, what


def reference(X: np.ndarray, cone: dict[str, Any], names: tuple[str, ...] = PEERS) -> list[float]:
    """The best margin of scaled cones by each of the peers; nan where one does not tell."""
    label = Placing(Product.from_scs(cone), len(X)).label
    norm = cone_norms(X, label)
    if (norm == 0).any():
        return [0.0 for _ in names]
    return [{"Clarabel": by_clarabel, "SCS": by_scs}[name](X / norm[:, None], cone, label) for name in names]


def program(A: np.ndarray, cone: dict[str, Any], place: np.ndarray) -> tuple[sp.csc_matrix, np.ndarray, np.ndarray]:
    """max t: (A y - t e) in K, (1, y) in the second-order cone: rows in some order, right-hand side and cost."""
    n, m = A.shape
    rows, right = np.zeros((n + m + 1, m + 1), order="F"), np.zeros(n + m + 1)
    rows[:n, :m], rows[:n, m], right[n] = -A, elements_of(Product.from_scs(cone)), 1.0
    np.fill_diagonal(rows[n + 1 :, :m], -1.0)
    if (place != np.arange(len(place))).any():
        rows, right = np.asfortranarray(rows[place]), right[place]
    size = len(rows)
    found = sp.csc_matrix(
        (rows.ravel(order="F"), np.tile(np.arange(size, dtype=np.int32), m + 1), size * np.arange(m + 2)), rows.shape
    )
    found.eliminate_zeros()
    return found, right, np.append(np.zeros(m), -1.0)


def by_clarabel(A: np.ndarray, cone: dict[str, Any], label: np.ndarray) -> float:
    """Interior points, at its tightest."""
    (n, m), order, cones = A.shape, [], []
    for group in groups_of(label):
        place = group.rows()
        if group.kind == "s":
            upper = np.zeros((group.size, group.size), int)
            upper[np.triu_indices(group.size)] = np.arange(group.dimension)  # lower by columns is upper by rows
            place = place[:, [upper[i, j] for j in range(group.size) for i in range(j + 1)]]
            cones += [clarabel.PSDTriangleConeT(group.size)] * len(place)
        elif group.kind == "q":
            cones += [clarabel.SecondOrderConeT(group.dimension)] * len(place)
        else:
            cones.append(clarabel.NonnegativeConeT(len(place)))
        order.append(place.reshape(-1))
    rows, right, cost = program(A, cone, np.concatenate([*order, n + np.arange(m + 1)]))
    del A
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, 1e-10, 1e-10, 1e-10
    cones.append(clarabel.SecondOrderConeT(m + 1))
    solution = clarabel.DefaultSolver(sp.csc_matrix((m + 1, m + 1)), cost, rows, right, cones, settings).solve()
    return -solution.obj_val if str(solution.status) in ("Solved", "AlmostSolved") else np.nan


def by_scs(A: np.ndarray, cone: dict[str, Any], label: np.ndarray) -> float:
    """Splitting, to 1e-8."""
    (n, m), kinds = A.shape, np.zeros(len(label), int)
    for group in groups_of(label):
        kinds[group.rows()] = "lqs".index(group.kind)
    place = [np.flatnonzero(kinds == 0), np.flatnonzero(kinds == 1), n + np.arange(m + 1), np.flatnonzero(kinds == 2)]
    rows, right, cost = program(A, cone, np.concatenate(place))
    del A
    sizes = {kind: [size for k, size, many in Product.from_scs(cone).runs if k == kind for _ in range(many)] for kind in "qs"}
    table = {"l": len(place[0]), "q": [*sizes["q"], m + 1], "s": sizes["s"]}
    found = scs.SCS(
        {"A": rows, "b": right, "c": cost}, table, verbose=False, eps_abs=1e-8, eps_rel=1e-8, max_iters=20_000
    ).solve()
    return -found["info"]["pobj"] if found["info"]["status"] == "solved" else np.nan


def verdicts(seeds: range) -> None:
    """Count what was found of each kind of instance, and print what is wrong."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = undecided_by = told_by_scs = 0
    methods = ("auto", "mirror-prox-one-pass", "smooth-perceptron", "von-neumann-away")
    for seed in seeds:
        X, cone, what = random_problem(seed)
        method = methods[0] if seed % 4 else methods[seed // 4 % 4]
        result = dfeas.solve(
            dfeas.from_cone_rows(X, cone), method=method, eps=1e-6 if method == "auto" else 1e-3, max_passes=300
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best, other = reference(X, cone)
        counts[what, result.verdict] += 1
        undecided_by += bool(np.isnan(best))
        told_by_scs += not np.isnan(other)
        for value, accurate in ((best, ACCURATE), (other, 1e-4)):
            inside = result.margin_lower - accurate <= value <= result.margin_upper + accurate
            if not (inside or np.isnan(value)):
                wrong += 1
                print(f"WRONG: seed {seed} {what} {cone}: {result.verdict} {result.margin_lower:.6g} .. "
                      f"{result.margin_upper:.6g}, reference {value:.6g}")  # fmt: skip
    print("| planted | feasible | infeasible | eps-infeasible | undecided |")
    print("|---|---|---|---|---|")
    for what in ("margin", "x", "random"):
        cells = [counts[what, verdict] for verdict in ("feasible", "infeasible", "eps-infeasible", "undecided")]
        print(f"| {what} | " + " | ".join(map(str, cells)) + " |")
    print(f"{len(seeds)} instances, {wrong} wrong; Clarabel told nothing of {undecided_by}, SCS told of {told_by_scs}\n")


def speed(m: int, count: int, turns: int, block_bytes: int) -> None:
    """A pass beside the bare product and the bare eigenvalues, and beside all bare parts of its arithmetic."""
    print("| cones | type | mu | bare GB/s | pass GB/s | pass / bare | bare / all parts |")
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for kind, size in (("l", 1), ("q", 5), ("s", 6), ("s", 20), ("s", 60)):
        for dtype in (np.float32, np.float64):
            d = size * (size + 1) // 2 if kind == "s" else size
            many = max(1, block_bytes // (np.dtype(dtype).itemsize * m * d))
            placing = Placing(Product(((kind, size, many),)), many * d)
            blocks = []
            for _ in range(count):
                X = rng.standard_normal((many * d, m)).astype(dtype)
                blocks.append(Block.of(0, X, placing.label, cone_norms(X, placing.label)))
            y = rng.standard_normal((m, 1)) / np.sqrt(m)
            factors = [(1 / block.norm).astype(dtype) for block in blocks]
            for mu in (0.3, 0.02, 0.0):
                question, narrow = SpectralSoftmin(y, np.array([mu])), y[:, 0].astype(dtype)
                bare, whole, own = [], [], []
                for _ in range(turns):
                    began = perf_counter()
                    for block in blocks:
                        eigenvalues(kind, size, (block.points @ narrow).reshape(many, d))
                    bare.append(perf_counter() - began)
                    began = perf_counter()
                    for block, factor in zip(blocks, factors, strict=True):
                        s = ((block.points @ narrow) * factor).reshape(many, d)
                        if mu == 0:
                            eigenvalues(kind, size, s)
                        else:
                            weighed(kind, size, s, mu).reshape(-1) * factor @ block.points
                    whole.append(perf_counter() - began)
                    began = perf_counter()
                    for block in blocks:
                        question.scan(block)
                    own.append(perf_counter() - began)
                ratio, of_parts = (median(a / b for a, b in zip(bare, each, strict=True)) for each in (own, whole))
                gb = sum(block.nbytes for block in blocks) / 1e9
                name, of = kind if kind == "l" else f"{kind} {size}", np.dtype(dtype).name
                rates = f"{gb / median(bare):.2f} | {gb / median(own):.2f}"
                print(f"| {name} | {of} | {mu} | {rates} | {ratio:.2f} | {of_parts:.2f} |")


def eigenvalues(kind: str, size: int, s: np.ndarray) -> np.ndarray:
    """Bare: LAPACK's of all matrices (c, k, k), and t - |u|."""
    if kind == "s":
        return np.linalg.eigvalsh(matrices(s, size))
    return s[:, 0] if kind == "l" else s[:, 0] - np.sqrt(np.einsum("ij,ij->i", s[:, 1:], s[:, 1:]))


def weighed(kind: str, size: int, s: np.ndarray, mu: float) -> np.ndarray:
    """Bare: exp((low - element) / mu) by eigenvectors (LAPACK's), as few calls as NumPy needs."""
    if kind == "l":
        return np.exp((s.min() - s) / mu)
    if kind == "s":
        value, V = np.linalg.eigh(matrices(s, size))
        return elements((V * np.exp((value.min() - value) / mu)[:, None]) @ np.swapaxes(V, 1, 2)).astype(s.dtype)
    u = s[:, 1:]
    radius = np.sqrt(np.einsum("ij,ij->i", u, u))
    low = s[:, 0] - radius
    near = np.exp((low.min() - low) / mu)
    far = near * np.exp(-2 / mu * radius)
    return np.concatenate([(near + far)[:, None], ((far - near) / radius)[:, None] * u], axis=1)


def large(options: argparse.Namespace) -> None:
    """Solve problems larger than memory, and what of them the peers can hold."""
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    print("| cones | answer | method | verdict (proof) | margin | passes | s | generation, s | verified again, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    try:
        for kind in options.kinds.split(","):
            data, began = folder / kind, perf_counter()
            generate(ConeInstance(kind, options.features, options.large, margin=options.margin), data)
            made = perf_counter() - began
            for method in options.methods.split(","):
                run = folder / f"{kind}-{method}"
                asked = {"eps": options.eps, "max_passes": options.max_passes, "time_limit": options.time_limit}
                result = dfeas.solve(data, method=method, memory=options.memory, out=run, **asked)
                began = perf_counter()
                if result.verdict != "undecided":
                    dfeas.verify_run(run, memory=options.memory)
                again = perf_counter() - began
                print(
                    f"| {options.large} | {kind} | {method} | {result.verdict} ({result.proof}) | {result.margin_lower:.4g} .. "
                    f"{result.margin_upper:.4g} | {result.passes:.3g} | {result.seconds:.1f} | {made:.1f} | {again:.1f} |"
                )
            shutil.rmtree(data)
        peers(options)
    finally:
        shutil.rmtree(folder)


def pieces_of(options: argparse.Namespace, many: int) -> tuple[ConeInstance, dict[str, Any]]:
    """So many cones of the kind of the large problem, and SCS's table of them."""
    kind, size, _ = Product.from_text(options.large).runs[0]
    instance = ConeInstance("cones", options.features, f"{kind}:{size}x{many}", margin=options.margin)
    return instance, {kind: [size] * many} if kind != "l" else {"l": many}


def rows_of_all(instance: ConeInstance) -> np.ndarray:
    """X (N, m), without padding, in float64."""
    X = np.concatenate([instance.block(i)[0] for i in range(instance.blocks)])
    return X[instance.layout.source >= 0]


def peers(options: argparse.Namespace) -> None:
    """The same question to SCS and Clarabel, and to us in memory, on as many rows as they get."""
    many = max(3, options.peers // Product.from_text(options.large).table.largest)
    instance, cone = pieces_of(options, many)
    X = rows_of_all(instance)
    began = perf_counter()
    result = dfeas.solve(dfeas.from_cone_rows(X, cone), margin_tolerance=1e-3)
    own, began = perf_counter() - began, perf_counter()
    first, second = reference(X, cone)
    theirs = perf_counter() - began
    print(f"{many} cones in memory: dfeas {own:.2f} s, margin {result.margin_lower:.6g}")
    print(f"Clarabel {first:.6g} and SCS {second:.6g} in {theirs:.1f} s together")


def search(options: argparse.Namespace) -> None:
    """The largest problem that each peer solves in its memory and time, by doubling, and what it takes us, out of core."""
    print("| cones | by | largest | s | margin | dfeas, s | margin | passes | twice as many |")
    print("|---|---|---|---|---|---|---|---|---|")
    for peer in options.search.split(","):
        many, best, ended = max(3, options.peers // Product.from_text(options.large).table.largest), None, ""
        while options.most is None or many <= options.most:
            told, ended = asked_alone(options, peer, many)
            if told is None:
                break
            best, many, ended = (many, told), 2 * many, "not tried"
        if best is None:
            print(f"| {options.large} | {peer} | none: {many} cones: {ended} | | | | | | |")
            continue
        count, told = best
        folder = Path(tempfile.mkdtemp(dir=options.folder))
        try:
            generate(pieces_of(options, count)[0], folder / "data")
            result = dfeas.solve(folder / "data", margin_tolerance=1e-3, memory=options.peer_memory)
        finally:
            shutil.rmtree(folder)
        own = f"{result.seconds:.1f} | {result.margin_lower:.6g} | {result.passes:.3g}"
        print(
            f"| {options.large} | {peer} | {count} | {told['seconds']:.1f} | {told['margin']:.6g} | {own} | {ended} |",
            flush=True,
        )


def asked_alone(options: argparse.Namespace, peer: str, many: int) -> tuple[dict[str, float] | None, str]:
    """What a peer told in a process of its own, or None and why."""
    words = [sys.executable, __file__, "--alone", peer, "--large", options.large, "--count", str(many)]
    words += ["--features", str(options.features), "--margin", str(options.margin), "--peer-memory", options.peer_memory]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.peer_time)
    except subprocess.TimeoutExpired:
        return None, f"more than {options.peer_time:g} s"
    if done.returncode == 0:
        told = json.loads(done.stdout.splitlines()[-1])
        return (told, "") if np.isfinite(told["margin"]) else (None, "did not converge")
    return None, "memory" if done.returncode < 0 or any(
        word in done.stderr for word in ("emory", "llocat")
    ) else done.stderr.strip().splitlines()[-1]


def alone(options: argparse.Namespace) -> None:
    """One peer, with a limit of what this process may take from now on."""
    instance, cone = pieces_of(options, options.count)
    idle = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = idle + parse_bytes(options.peer_memory)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    X, began = rows_of_all(instance), perf_counter()
    (margin,) = reference(X, cone, (options.alone,))
    print(json.dumps({"margin": margin, "seconds": perf_counter() - began}))


if __name__ == "__main__":
    main()

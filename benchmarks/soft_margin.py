"""Soft margins beside scikit-learn: time, reads, objective and proved gap.

    python benchmarks/soft_margin.py --points 500000,2000000 --features 100 --peer-points 500000

Points on both sides of a plane with 5 % of the labels wrong, float32, C = 1, no intercept; dfeas reads them from its own
dataset in a budget of ``--memory``, the others hold them in memory. The objective is |w|^2/2 + C sum of losses, computed here
in float64 for all of them, as a ratio to the lower bound that dfeas proves: 1 is the minimum. ``SGDClassifier.partial_fit``
gets as many epochs as take it about as long as dfeas took. The last rows are four C and five folds on the same reads beside
one fit. Each row is a process of its own, whose memory is the most that it had above what it began with.

dask_ml has no soft margin: its ``linear_model`` has regressions only. The nearest is ``Incremental`` around
``SGDClassifier(loss="hinge")``, which has the objective of the others; it is called as often as it fits into the time of dfeas,
once at least. Beside it is ``LogisticRegression`` with the same C by L-BFGS, whose loss is another one: what its column says is
the hinge objective of its hyperplane. Both read a Dask array over the blocks of the same dataset, in threads of one process;
the first streams, the second one holds the points, so ``--logistic-points`` says up to how many it is run. Without dask_ml a
line says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROWS = 100_000


def blocks(n: int, m: int, seed: int = 0) -> Any:
    """Runs of points (b, m) and labels."""
    w = np.random.default_rng(seed).standard_normal(m)
    for first in range(0, n, ROWS):
        rng = np.random.default_rng((seed, first))
        X = rng.standard_normal((min(ROWS, n - first), m), dtype=np.float32)
        y = np.where(X @ w > 0, 1, -1)
        yield X, np.where(rng.random(len(y)) < 0.05, -y, y)


def write(n: int, m: int, out: Path) -> None:
    """The dataset, as .npy files that are ingested."""
    import dfeas

    points = np.lib.format.open_memmap(out.with_suffix(".npy"), "w+", np.float32, (n, m))
    labels, first = np.empty(n, np.int8), 0
    for X, y in blocks(n, m):
        points[first : first + len(X)], labels[first : first + len(X)] = X, y
        first += len(X)
    np.save(out.with_suffix(".labels.npy"), labels)
    points.flush()
    dfeas.ingest(out.with_suffix(".npy"), out, y=str(out.with_suffix(".labels.npy")))


def stored(path: str, m: int) -> Any:
    """Runs of points (b, m) and labels, from the .npy files: a few of them in memory."""
    labels, first = np.load(Path(path).with_suffix(".labels.npy")), 0
    with Path(path).with_suffix(".npy").open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        while first < len(labels):
            X = np.fromfile(file, np.float32, min(ROWS, len(labels) - first) * m).reshape(-1, m)
            yield X, labels[first : first + len(X)].astype(np.int64)
            first += len(X)


def objective(w: np.ndarray, path: str, power: int) -> float:
    """|w|^2/2 + sum of losses."""
    slack = (np.maximum(0, 1 - y * (X.astype(float) @ w)) for X, y in stored(path, len(w)))
    return float(w @ w / 2 + sum((each**power).sum() for each in slack))


def peak() -> int:
    """The most memory (kB) that this program had; unlike getrusage not that of the process it was forked from."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def one(name: str, n: int, m: int, path: str, memory: str, limit: float) -> dict[str, Any]:
    """Fit, and say seconds, objective, and what else there is."""
    power = 2 if "squared" in name else 1
    if name.startswith("dfeas"):
        import dfeas

        options: dict[str, Any] = {"intercept": False} | ({"loss": "squared_hinge"} if power == 2 else {})
        if "folds" in name:
            options |= {"C": [0.01, 0.1, 1, 10], "folds": 5}
        if "1e-6" in name:
            options |= {"gap": 1e-6}
        dfeas.soft_margin(np.eye(2), [1, -1], **options | ({"folds": 2} if "folds" in name else {}))
        began = perf_counter()
        found = dfeas.soft_margin(path, memory=memory, **options)
        seconds, fit = perf_counter() - began, next(fit for fit in found.fits if fit.C == 1 and fit.fold is None)
        w = found.path[found.fits.index(fit)]
        return {
            "seconds": seconds,
            "value": objective(w, path, power),
            "lower": fit.lower,
            "gap": found.gap,
            "reads": found.passes,
        }
    from sklearn import svm
    from sklearn.linear_model import SGDClassifier

    if name.startswith("dask_ml"):
        return with_dask_ml(name, n, path, limit)
    if name == "SGDClassifier.partial_fit":
        # its objective is a mean: alpha = 1 / (C n)
        model, epochs = SGDClassifier(alpha=1 / n, fit_intercept=False, average=True), 0
        began, seconds = perf_counter(), 0.0
        while epochs == 0 or (perf_counter() - began < limit and epochs < 100):
            for X, y in stored(path, m):
                at = perf_counter()
                model.partial_fit(X, y, classes=[-1, 1])
                seconds += perf_counter() - at
            epochs += 1
        return {"seconds": seconds, "value": objective(model.coef_[0].astype(float), path, 1), "reads": epochs}
    parts = list(stored(path, m))
    X, y = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    kind = {"loss": "squared_hinge", "dual": False} if power == 2 else {"loss": "hinge"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is seen from the objective
        began = perf_counter()
        model = svm.LinearSVC(fit_intercept=False, **kind).fit(X, y)
    seconds = perf_counter() - began
    return {"seconds": seconds, "value": objective(model.coef_[0].astype(float), path, power), "reads": int(model.n_iter_)}


def with_dask_ml(name: str, n: int, path: str, limit: float) -> dict[str, Any]:
    """The nearest that dask_ml has, on a Dask array over the dataset."""
    import dask
    import dask.array as da
    import zarr
    from dask_ml.linear_model import LogisticRegression
    from dask_ml.wrappers import Incremental
    from sklearn.linear_model import SGDClassifier

    group = zarr.open_group(path, mode="r")
    X = da.from_array(group["X"], chunks=group["X"].chunks)
    y = da.from_array(group["label"], chunks=(X.chunks[0],))
    # its steps follow each other: a second thread would only read ahead, without a bound
    threads = {"num_workers": 1} if "Incremental" in name else {}
    with dask.config.set(scheduler="threads", **threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began, epochs = perf_counter(), 0
        if "Incremental" in name:
            # its objective is a mean: alpha = 1 / (C n)
            model = Incremental(SGDClassifier(alpha=1 / n, fit_intercept=False, average=True), shuffle_blocks=False)
            while epochs == 0 or (perf_counter() - began) * (epochs + 1) / epochs < limit:
                model.partial_fit(X, y, classes=[-1, 1])
                epochs += 1
            w = model.estimator_.coef_[0]
        else:
            model = LogisticRegression(solver="lbfgs", C=1.0, fit_intercept=False).fit(X, (y + 1) // 2)
            w = model.coef_.reshape(-1)
        seconds = perf_counter() - began
    return {"seconds": seconds, "value": objective(np.asarray(w, float), path, 1), "reads": epochs or None}


def measured(name: str, n: int, m: int, path: Path, memory: str, limit: float) -> dict[str, Any]:
    """The same in a process of its own."""
    words = [sys.executable, __file__, "--one", name, str(n), str(m), str(path), memory, str(limit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} with {n} points: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="500000,2000000")
    parser.add_argument("--peer-points", type=int, default=500_000, help="the most that LinearSVC is given")
    parser.add_argument("--logistic-points", type=int, default=2_000_000, help="the most that dask_ml's regression is given")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--names", default=None, help="only these rows, with semicolons between them")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--folder", default=None, help="for the data; removed at the end")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one:
        name, n, m, path, memory, limit = options.one
        before = peak()
        found = one(name, int(n), int(m), path, memory, float(limit))
        print(json.dumps({**found, "mb": (peak() - before) / 1024}))
        return
    names = ["dfeas hinge", "dfeas hinge, gap 1e-6", "dfeas squared hinge", "SGDClassifier.partial_fit"]
    has_dask_ml = importlib.util.find_spec("dask_ml") is not None
    if has_dask_ml:
        names.append("dask_ml Incremental(SGDClassifier)")
    else:
        print("dask_ml is not installed: its rows are left out (pip install dask-ml)\n")
    print(
        "| points | | s | ratio of time | objective / lower bound | reads or iterations | MB |\n|---|---|---|---|---|---|---|"
    )
    for n in [int(text) for text in options.points.split(",")]:
        logistic = (
            ["dask_ml LogisticRegression"] if importlib.util.find_spec("dask_ml") and n <= options.logistic_points else []
        )
        peers = ["LinearSVC hinge", "LinearSVC squared hinge"] if n <= options.peer_points else []
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / "data"
            write(n, options.features, path)
            first: dict[str, Any] = {}
            lower: dict[bool, float] = {}
            rows = [*names, *logistic, *peers, "dfeas hinge, 4 C, 5 folds"]
            for name in options.names.split(";") if options.names else rows:
                found = measured(name, n, options.features, path, options.memory, first.get("seconds", 0.0))
                first = first or found
                squared = "squared" in name
                lower[squared] = max(lower.get(squared, 0.0), found.get("lower", 0.0))
                reads = "-" if found["reads"] is None else f"{found['reads']:.4g}"  # its regression does not say
                ratio, value = found["seconds"] / first["seconds"], found["value"] / lower[squared]
                cells = [n, name, f"{found['seconds']:.2f}", f"{ratio:.2f}", f"{value:.6f}", reads]
                print(f"| {' | '.join(map(str, cells))} | {found['mb']:.0f} |", flush=True)


if __name__ == "__main__":
    main()

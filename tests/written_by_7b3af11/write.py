"""python write.py: datasets, finished runs and runs that can go on, in an archive beside this script.

They were written by commit 7b3af11; see README.md. With a newer dfeas they would hold what that one writes.
"""

import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import dfeas
from dfeas.cones.instances import ConeInstance, generate_cones

ROOM = Path("/tmp/written_by_7b3af11")
"""Runs and traces hold the absolute path of their data: tests put another one in its place."""
DATA, FINISHED, UNFINISHED = ROOM / "datasets", ROOM / "finished", ROOM / "unfinished"

POINTS = {"dense": "planted", "flipped": "one-flip", "random": "gaussian"}
KERNEL: dict[str, Any] = {"kernel": "rbf", "gamma": 2.0}
LINE: dict[str, Any] = {"kernel": "polynomial", "degree": 1, "gamma": 1.0, "coef0": 1.0}


def overlapping(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers on both sides of a plane, some with the wrong label."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-9, 10, (n, m)).astype(np.float64)
    wrong = rng.random(n) < 0.1
    return X, np.where((X.sum(axis=1) > 0.5) ^ wrong, 1, -1)


def datasets() -> None:
    """Of each kind that a header can describe."""
    for name, kind in POINTS.items():
        dfeas.generate(dfeas.Instance(kind, m=4, n=100, margin=0.1, block_rows=32), DATA / name)
    X, y = overlapping(90, 3, 0)
    dfeas.ingest(X, DATA / "overlapping", labels=y)
    dfeas.ingest(X.astype(np.int8), DATA / "whole", labels=np.where(y > 0, "yes", "no"), positive="no")
    corner = np.arange(90) % 3
    dfeas.ingest((X + 40 * np.eye(3)[corner]).astype(np.float16), DATA / "half", labels=np.array(["a", "b", "c"])[corner])
    zeros = X.copy()
    zeros[[4, 7]] = 0
    dfeas.ingest(zeros, DATA / "zeros", labels=y)
    dfeas.ingest(scipy.sparse.random_array((90, 8), density=0.2, rng=1, format="csr"), DATA / "sparse", labels=y)
    dummy = np.column_stack([np.arange(90) % 3 == k for k in range(3)] + [X[:, 0]]).astype(np.float64)
    dfeas.ingest(dummy, DATA / "dummy", labels=np.where(dummy[:, 2] > 0, 1, y))
    for name in ("cones", "cones-infeasible"):
        generate_cones(ConeInstance(name, 4, "l:6,q:3x8,s:2x6", 0.05), DATA / name)
    generate_cones(ConeInstance("cones", 4, "q:5x1", 0.05), DATA / "one-cone")


def finished() -> None:
    """Each verdict, proof and way of looking at data."""

    def solve(name: str, data: str, **options: Any) -> None:
        dfeas.solve(DATA / data, out=FINISHED / name, **options)

    solve("feasible", "dense")
    solve("feasible-intercept", "dense", intercept=True)
    solve("feasible-widest", "dense", margin_tolerance=1e-2)
    solve("infeasible", "flipped")
    solve("infeasible-sparse", "sparse")
    solve("eps", "random", method="mirror-prox-one-pass", eps=0.2)
    solve("transformed", "overlapping", scale="std", center=True)
    solve("lengths", "overlapping", normalize=False)
    solve("parts", "dense", also=[DATA / "random"], mask=_mask())
    solve("kernel", "overlapping", **KERNEL)
    solve("kernel-infeasible", "overlapping", kernel="polynomial", degree=2, gamma=1.0, coef0=1.0)
    solve("cones", "cones")
    solve("cones-infeasible", "cones-infeasible")
    solve("classes", "half", one_vs_rest=True, intercept=True)
    dfeas.race(DATA / "dense", methods=["perceptron", "mirror-prox"], out=FINISHED / "race")
    dfeas.hard_margin(DATA / "dense", out=FINISHED / "hard-margin")
    dfeas.separation(DATA / "dense", out=FINISHED / "complete")
    dfeas.separation(DATA / "dummy", out=FINISHED / "quasi-complete")
    dfeas.separation(DATA / "overlapping", out=FINISHED / "overlap")
    dfeas.in_hull(np.zeros(3), DATA / "overlapping", out=FINISHED / "hull")
    dfeas.soft_margin(DATA / "overlapping", C=1.0, out=FINISHED / "soft", dual=FINISHED / "dual.npy")
    dfeas.soft_margin(DATA / "overlapping", C=[0.1, 1.0], folds=3, loss="squared_hinge", out=FINISHED / "soft-path")


def _mask() -> Path:
    np.save(DATA / "mask.npy", np.arange(200) % 5 > 0)
    return DATA / "mask.npy"


def unfinished() -> None:
    """Each method, stopped at a limit of passes."""
    three: dict[str, Any]
    widest: dict[str, Any]
    three, widest = {"eps": 1e-6, "max_passes": 3}, {"margin_tolerance": 1e-6, "max_passes": 2}
    for method in dfeas.METHODS:
        data, words = ("dense", widest) if method.startswith("working-set") else ("random", three)
        dfeas.solve(DATA / data, method=method, out=UNFINISHED / method, **words)
    for method in dfeas.KERNEL_METHODS:
        words = {"margin_tolerance": 1e-6, "max_passes": 1, **KERNEL} if method == "working-set" else {**three, **LINE}
        dfeas.solve(DATA / "overlapping", method=method, out=UNFINISHED / f"kernel-{method}", **words)
    for method in dfeas.CONE_METHODS:
        data, words = (
            ("cones", {**widest, "max_passes": 1})
            if method == "working-set"
            else ("cones-infeasible", {**three, "max_passes": 2})
        )
        data = "one-cone" if "euclidean" in method else data
        dfeas.solve(DATA / data, method=method, out=UNFINISHED / f"cones-{method}", **words)
    for method in ("auto", "sgd"):
        out = UNFINISHED / f"soft-{method}"
        dfeas.soft_margin(DATA / "overlapping", C=1.0, method=method, gap=1e-9, max_passes=2, out=out)
    squared = UNFINISHED / "soft-squared"
    dfeas.soft_margin(DATA / "overlapping", C=1.0, folds=2, loss="squared_hinge", gap=1e-9, max_passes=2, out=squared)
    names = ["perceptron", "von-neumann", "ispvn"]
    dfeas.race(DATA / "random", methods=names, eps=1e-6, max_passes=3, out=UNFINISHED / "race")
    dfeas.solve(DATA / "half", method="mirror-prox", one_vs_rest=True, out=UNFINISHED / "classes", **widest)
    moved: dict[str, Any] = {"scale": "std", "center": True, "method": "mirror-prox", "eps": 1e-6, "max_passes": 3}
    dfeas.solve(DATA / "overlapping", out=UNFINISHED / "transformed", **moved)


def main() -> None:
    shutil.rmtree(ROOM, ignore_errors=True)
    for folder in (DATA, FINISHED, UNFINISHED):
        folder.mkdir(parents=True)
    datasets()
    finished()
    unfinished()
    with tarfile.open(Path(__file__).with_name("written.tar.xz"), "w:xz", preset=9) as archive:
        for path in sorted(path for path in ROOM.rglob("*") if path.suffix != ".svg"):
            archive.add(path, path.relative_to(ROOM), recursive=False, filter=plain)
    shutil.rmtree(ROOM)


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who wrote it and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()

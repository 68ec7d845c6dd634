"""Runs of the gate, by name: command lines, and functions of ``dfeas``."""

from __future__ import annotations

import re
import time
from itertools import count
from pathlib import Path

import numpy as np
import scipy.sparse

import dfeas
from tests.gate_bench import Bench, Case, Record
from tests.gate_data import clusters, eighths, people

DENSE = """working-set working-set-plain mirror-prox mirror-prox-one-pass mirror-prox-fixed smooth-perceptron perceptron
    normalized-perceptron online-perceptron margin-perceptron margin-perceptron-unit winnow von-neumann von-neumann-away
    snkpvn ispvn smooth-winnow rescaled-perceptron rescaled-perceptron-ellipsoid"""
KERNEL = """working-set mirror-prox mirror-prox-fixed smooth-perceptron perceptron normalized-perceptron von-neumann snkpvn
    ispvn"""
CONES = """working-set mirror-prox mirror-prox-one-pass mirror-prox-fixed smooth-perceptron perceptron normalized-perceptron
    von-neumann von-neumann-away ispvn"""
"""``mirror-prox-euclidean`` is for one cone: ``cones_of_scs``."""

RACE, KERNEL_RACE, CONE_RACE = (
    f"--methods {','.join(methods.split())} --max-passes {passes}"
    for methods, passes in ((DENSE, 6), (KERNEL, 10), (CONES, 10))
)
N = "--no-intercept"  # the question of the papers
GENERATE = "--features 6 --points 300 --seed 7"

LINES = f"""
dense/thin: solve @thin --out run {N}; verify run; predict run @thin scores.npy
dense/normal: solve @normal --out run {N}; verify run; verify @normal run/certificate.npz {N}; status run; info @normal
dense/bytes: solve @bytes --out run {N}; solve @bytes --method mirror-prox-one-pass --max-passes 30 --out other {N}
dense/own-array: solve @own.zarr --labels @own-labels.npy --intercept --out run; verify run
dense/maximum-margin: solve @planted --margin-tolerance 1e-6 --out run {N}; solve @planted --hard-margin --out hard {N}
dense/gap: solve @planted --margin-tolerance 0.2 --method mirror-prox --out run {N}
dense/some: solve @planted --mask @mask.npy --out a {N}; solve @planted {N} --also @flip --mask @mask-both.npy --out b; verify b
dense/scaled: solve @thin --scale maxabs --out run {N}; verify run; predict run @thin scores.npy
dense/centered: solve @thin --scale std --center --intercept --method mirror-prox-one-pass --max-passes 30 --out run
dense/lengths: solve @thin --no-normalize --method smooth-perceptron --max-passes 30 --out run {N}
dense/memory: solve @thin --memory 170MB --out run {N}
dense/resume: solve @thin --method mirror-prox --max-passes 7 --out run {N}; resume run --max-passes 30; verify run
dense/race: race @planted --out a {RACE} {N}; race @flip --out b {RACE} {N}; compare a b
dense/race-resume: race @flip --out run --methods perceptron,mirror-prox --max-passes 5 {N}; resume run --max-passes 200
dense/classes: solve @clusters --one-vs-rest --intercept --out run; verify run; predict run @clusters classes.npy
dense/class: solve @clusters --positive dog --out run {N}; predict run @clusters --positive dog scores.npy
dense/classes-on: solve @clusters --one-vs-rest --method mirror-prox --max-passes 1 --out run {N}; resume run --max-passes 99
people/separation: solve @people --separation --intercept --out run; verify run
people/complete: solve @people --labels @born.npy --separation --intercept --out run; verify run
people/predict: solve @people --labels @born.npy --intercept --out run; predict run @people --labels @born.npy scores.npy
people/solve: solve @people --intercept --out run; solve @people --intercept --scale std --center --out scaled; verify scaled
people/levels: solve @levels --separation --intercept --out run; verify run
people/table: check-separation @people.csv --label-column bought; check-separation @people.parquet --label-column bought
people/unreadable: ingest @gaps.csv data --label-column bought; ingest @dates.csv data --label-column bought
people/refused: ingest @people.csv data --label-column none; solve @people --mask @mask.npy --out run; solve nothing --out run
people/usage: solve @people --method none --out run; solve @rings --kernel rbf --intercept --out run; plan @rings --degree 2
hull/inside: in-hull 0,0,0,0,0,0,0,0,0,0 @flip --out run
hull/outside: in-hull 9,0,0,0,0,0,0,0,0,0 @flip --out run
hull/boundary: in-hull 0.5,0,0,0,0 @own.zarr --out run; in-hull 5,5,5,5,4.75 @own.zarr --out other
people/suspects: suspects @flip --out suspects.csv {N}
system/feasible: feasible @own.zarr @right.npy --out run; feasible @own.npy @right.npy --bounds 9,inf --out other
sparse/text: solve @text --out run {N}; verify run; predict run @text scores.npy; info @text
sparse/race: race @text --out a {RACE} {N}; race @words --out b --intercept {RACE}
sparse/words: solve @words --scale maxabs --intercept --out run; verify run; solve @words --separation --out kind {N}
sparse/kernel: solve @words --kernel cosine --out run; solve @words --kernel rbf --out other; verify other
kernel/exponential: solve @rings --kernel exponential --gamma 1 --out a; solve @rings-no --kernel exponential --out b
kernel/polynomial: solve @rings --kernel polynomial --out a; solve @rings-no --kernel polynomial --degree 2 --coef0 2 --out b
kernel/linear: solve @flip --kernel linear --out run; solve @rings --kernel cosine --out other; verify run
kernel/commands: solve @rings --kernel rbf --out run; verify run; predict run @rings scores.npy; plan @rings --kernel rbf
kernel/race: race @rings --kernel exponential --out run {KERNEL_RACE}
kernel/resume: solve @rings-no --kernel rbf --method snkpvn --max-passes 4 --out run; resume run --max-passes 30
kernel/classes: solve @clusters --kernel rbf --one-vs-rest --out run; verify run; predict run @clusters classes.npy
cones/l: solve @cones-l --out run; verify run
cones/q: solve @cones-q --out run; verify run; info @cones-q
cones/s: solve @cones-s --out run; verify run
cones/many: solve @cones-many --out run; verify run
cones/commands: solve @cones --out run; predict run @cones least.npy; plan @cones
cones/resume: solve @cones --method mirror-prox --max-passes 2 --out run; resume run --max-passes 60
cones/race: race @cones-no --out run {CONE_RACE}
svm/hinge: svm @flip --C 0.1,1 --out run --dual dual.npy {N}; predict run @flip scores.npy; verify run
svm/squared: svm @normal --loss squared_hinge --C 1 --intercept --class-weight balanced --out run
svm/folds: svm @clusters --positive cat --C 0.1,1 --folds 3 --random-state 1 --out run {N}
svm/sgd: svm @flip --method sgd --max-passes 6 --out run {N}
svm/fixed-steps: svm @flip --method sgd:alpha=0.02 --max-passes 6 --out run {N}; resume run --max-passes 12
svm/sparse: svm @words --intercept --out run; svm @words --loss squared_hinge --out other {N}
svm/resume: svm @normal --C 1 --max-passes 1 --out run {N}; resume run --max-passes 200
svm/picked: svm @planted --mask @mask.npy --class-weight 1,3 --out run {N}; plan @planted --C 1,2 --folds 2 {N}
data/generate: generate planted a {GENERATE}; generate one-flip b {GENERATE}; generate halfspace c {GENERATE} --density 0.5
data/types: generate gaussian a {GENERATE} --dtype int16; generate gaussian b {GENERATE} --dtype float16
data/cones: generate cones-infeasible a --features 5 --cones q:3x20,s:3x5; generate cones b --features 5 --cones l:9
data/csv: ingest @people.csv a --label-column bought; ingest @people.csv b --label-column 8 --dtype float32 --positive no
data/parquet: ingest @people.parquet a --label-column -1; info a
data/svmlight: ingest @words.svmlight a; ingest @words.svmlight b --dense --features 60
data/arrays: ingest @clusters.npz a; ingest @clusters.npz b --positive cat; ingest @own.npy c --labels @own-labels.npy
data/plan: plan @planted {N}; plan @clusters --one-vs-rest {N}; plan @text --method mirror-prox --margin 0.01 {N}
cluster/race: race @planted --out a {RACE} --scheduler @cluster {N}
cluster/auto: solve @flip --out run --scheduler @cluster {N}; solve @text --out text --scheduler @cluster {N}
cluster/classes: solve @clusters --one-vs-rest --intercept --out run --scheduler @cluster
cluster/kernel: race @rings --kernel exponential --out run {KERNEL_RACE} --scheduler @cluster
cluster/cones: solve @cones-many --out run --scheduler @cluster
cluster/svm: svm @flip --C 0.1,1 --out run --dual dual.npy --scheduler @cluster {N}
cluster/resume: solve @thin --method mirror-prox --max-passes 7 --out run --scheduler @cluster {N}; resume run --max-passes 30
cluster/ingest: ingest @people.csv a --label-column bought --scheduler @cluster
cluster/processes: solve @planted --method mirror-prox --out run --local 1 {N}
"""


def each(room: str, methods: str, data: str, options: str) -> dict[str, str]:
    """Each method by itself, on data that has a separator and on data that has none."""
    yes, no = (f"solve @{name} {options}" for name in data.split())
    return {f"{room}/{name}": f"{yes} --method {name} --out a; {no} --method {name} --out b" for name in methods.split()}


COMMANDS: dict[str, str] = {
    **each("dense", DENSE, "planted flip", f"{N} --max-passes 80"),
    **each("kernel", KERNEL, "rings rings-no", "--kernel rbf --gamma 1 --eps 0.02 --max-passes 60"),
    **each("cones", CONES, "cones cones-no", "--max-passes 60"),
    **dict(line.split(": ", 1) for line in LINES.strip().splitlines()),
}


def typed(lines: str) -> Case:
    """Commands, one after the other in one folder."""

    def run(bench: Bench, record: Record) -> None:
        for line in lines.split("; "):
            bench.typed(line, record)

    return run


def arrays(bench: Bench, record: Record) -> None:
    """dfeas.solve of what Python holds: dense, sparse, Dask; a mask, scaled and centred; ended by a callback; a kernel."""
    import dask.array

    X, y = eighths()
    for i, points in enumerate((X, X.astype(np.float32), scipy.sparse.csr_array(X), dask.array.from_array(X, chunks=(90, 5)))):
        record.returned(dfeas.solve(points, y, intercept=True, out=f"run-{i}"))
    half, reads = np.arange(len(X)) % 2 == 0, count()
    record.returned(dfeas.solve(X, y, positive="b", mask=half, transform=["std", "center"], intercept=True, out="scaled"))
    ends = {"callback": lambda read: next(reads) == 2, "out": "ended"}
    record.returned(dfeas.solve(X, y, intercept=False, method="mirror-prox", **ends))
    record.returned(dfeas.solve(X, y, kernel=lambda A, B: (A @ B.T + 1) ** 2, max_passes=30, out="kernel"))


def verbs(bench: Bench, record: Record) -> None:
    """The other questions about points in memory, and a run that goes on."""
    X, y = eighths()
    record.returned(dfeas.race(X, y, methods=["perceptron", "working-set"], intercept=True, out="race"))
    record.returned(dfeas.soft_margin(X, y, C=[0.1, 1], intercept=True, loss="squared_hinge", out="soft"))
    record.returned(dfeas.separation(X, y, intercept=True, out="kind"))
    record.returned(dfeas.hard_margin(X, y, intercept=True, out="hard"))
    record.returned(dfeas.in_hull(X[0], X[1:], out="hull"))
    record.returned(dfeas.feasible(X, np.ones(len(X)), equal=(X[:1], [1.0]), bounds=(-1, None), out="system"))
    record.returned(dfeas.solve(X, y, intercept=True, method="mirror-prox", max_passes=2, out="run"))
    record.returned(dfeas.resume("run", X, y, max_passes=400))


def files(bench: Bench, record: Record) -> None:
    """A frame becomes a dataset, which is solved, checked and used."""
    import pandas as pd

    X, y = clusters()
    frame = pd.DataFrame({**{f"x{i}": X[:, i] for i in range(6)}, "kind": y})
    dfeas.ingest(frame[:600], "data", label_column="kind")
    record.returned(dfeas.solve("data", positive="cat", intercept=True, out="run"))
    record.returned(dfeas.verify_run("run"))
    record.returned(dfeas.verify_certificate("data", "run/certificate.npz", positive="cat", intercept=True))
    record.answer += [dfeas.predict("run", X).score, dfeas.compare(["run"])]


def regression(bench: Bench, record: Record) -> None:
    """dfeas.check_separation of a frame, of all and without the west, whose column is zero then."""
    import pandas as pd

    frame = pd.DataFrame(people())
    for rows in (frame, frame[frame["west"] == 0]):
        found = dfeas.check_separation(rows.drop(columns="bought"), rows["bought"])
        record.kind({"kind": found.kind, "proof": found.proof, "columns": found.columns, "points": found.points})
        record.answer.append([found.direction, found.intercept, found.depending])


def cones_of_scs(bench: Bench, record: Record) -> None:
    """dfeas.from_cone_rows, and of that dfeas.ingest, with matrices of dfeas.svec, and the method for one second-order cone."""
    rng = np.random.default_rng(6)
    matrices = rng.integers(-3, 4, (5, 3, 3)).astype(np.float64)
    X = np.vstack([1 + rng.random((3, 5)), 2 * np.eye(5), np.array([dfeas.svec(S + S.T + 6 * np.eye(3)) for S in matrices]).T])
    record.returned(dfeas.solve(dfeas.from_cone_rows(X, {"l": 3, "q": [5], "s": [3]}), out="memory"))
    dfeas.ingest(dfeas.from_cone_rows(scipy.sparse.csr_array(X), {"l": 3, "q": [5], "s": [3]}), "data")
    record.returned(dfeas.solve("data", method="von-neumann-away", out="disk"))
    one = dfeas.from_cone_rows(np.vstack([np.full((1, 6), 2.0), rng.standard_normal((8, 6)) / 4]), {"q": [9]})
    record.returned(dfeas.solve(one, method="mirror-prox-euclidean", out="one"))


def estimators(bench: Bench, record: Record) -> None:
    """Those for scikit-learn, of two classes and of three."""
    from dfeas.estimators.linear_svc import LinearSVC, LinearSVCCV
    from dfeas.estimators.separator import KernelSeparator, Separator

    X, y = clusters(300)
    for model in (Separator(), LinearSVC(C=0.5), LinearSVCCV([0.1, 1], folds=3), KernelSeparator("rbf", gamma=0.2)):
        for some in (y != "eel", y != ""):
            model.fit(X[some], y[some])
            record.answer += [model.predict(X), model.decision_function(X)]


def page(bench: Bench, record: Record) -> None:
    """dfeas report: the headings of a page about two runs."""
    for method in ("mirror-prox", "von-neumann"):
        bench.typed(f"solve @planted --method {method} --out {method} {N}", record)
    bench.typed("report mirror-prox von-neumann --out page.html", record)
    record.answer.append(re.findall(r"<h[1-6]>(.*?)</h", Path("page.html").read_text()))


def submitted(bench: Bench, record: Record) -> None:
    """A run that the cluster drives: submitted, watched, fetched."""
    run = bench.typed(f"submit @planted --method mirror-prox --out there --scheduler @cluster {N}", Record())["run"]
    deadline = time.monotonic() + 60
    while bench.typed(f"status {run} --scheduler @cluster", Record())[0]["task"] not in ("memory", "erred"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{run} did not end")
        time.sleep(0.02)
    bench.typed(f"fetch {run} --scheduler @cluster --out here", record)


CASES: dict[str, Case] = {
    **{name: typed(lines) for name, lines in COMMANDS.items()},
    "people/regression": regression,
    "cones/scs": cones_of_scs,
    "data/page": page,
    "python/arrays": arrays,
    "python/verbs": verbs,
    "python/files": files,
    "python/estimators": estimators,
    "cluster/submit": submitted,
}

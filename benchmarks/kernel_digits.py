"""Test error of kernel classifiers by iterations: the experiment of Yu et al. 2014, figure 2, on scikit-learn's digits.

    python benchmarks/kernel_digits.py [--plot FILE]

One against the rest, ten classifiers; a test image gets the class whose unit y gives the largest value. The kernel is the one
printed there, exp(-gamma |x - z|), with the norm not squared: "exponential" here. Their gamma of 5.5 was for CIFAR-10; here
pixels are scaled to [0, 1] and gamma is one over the median distance, unless it is given. Each method is asked for the vector
that its paper returns. An iteration is a product, and the products of all classes share their tiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from dfeas.engine import LocalEngine
from dfeas.kernels import Kernel, kernel_of, usual_gamma
from dfeas.kernels.labellings import apart, one_against_rest, together
from dfeas.kernels.methods import KERNEL_METHODS
from dfeas.kernels.methods.combination import Combination
from dfeas.kernels.methods.perceptron import KernelPerceptron
from dfeas.methods import Facts
from dfeas.store import from_arrays

METHODS: dict[str, tuple[Callable[[Kernel], Any], Callable[[Any], Combination]]] = {
    "mirror-prox": (KERNEL_METHODS["mirror-prox"], lambda state: state.y_sum),
    "ispvn": (KERNEL_METHODS["ispvn"], lambda state: state.inner.loop.y),
    "perceptron": (partial(KernelPerceptron, cap=1, most=1), lambda state: state.total),
    "von-neumann": (KERNEL_METHODS["von-neumann"], lambda state: state.x),
    "smooth-perceptron": (KERNEL_METHODS["smooth-perceptron"], lambda state: state.y),
}
"""The method, one correction a product for the perceptron, and the y of its paper."""


def states(method: Any, engine: LocalEngine, signs: np.ndarray) -> Iterator[list[Any]]:
    """The states of all classifiers after each product."""
    m, n = engine.shape
    current = [method.init(Facts(m, n)) for _ in signs]
    while True:
        asked = [method.ask(state) for state in current]
        answers = apart(asked, signs, engine.run(together(asked, signs)))
        current = [method.tell(state, answer) for state, answer in zip(current, answers, strict=True)]
        yield current


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=1000, help="images to train on; the others are for the test")
    parser.add_argument("--iterations", default="10,32,100,320,1000")
    parser.add_argument("--gamma", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="draw the figure into this file (extra: report)")
    options = parser.parse_args(words)
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(options.seed).permutation(len(images))
    X, digits = images[order] / 16, digits[order]
    train, test = X[: options.train], X[options.train :]
    gamma = options.gamma or usual_gamma(kernel_of("exponential")[0], train)
    kernel = kernel_of("exponential", gamma)[0]
    signs = one_against_rest(digits[: options.train])[1]
    looks = [int(word) for word in options.iterations.split(",")]
    print(f"{len(train)} images to train on, {len(test)} to test, {kernel}\n")
    across = kernel.tile(kernel.prepared(test, False)[0], kernel.prepared(train, False)[1])
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for name, (make, solution) in METHODS.items():
        engine, began = LocalEngine(from_arrays(train)), perf_counter()
        errors[name] = []
        for count, found in enumerate(states(make(kernel), engine, signs), 1):
            if count in looks:
                y = np.column_stack([sign * _unit(solution(state)) for sign, state in zip(signs, found, strict=True)])
                errors[name].append(float(((across @ y).argmax(axis=1) != digits[options.train :]).mean()))
            if count == max(looks):
                break
        seconds[name] = perf_counter() - began
        engine.close()
    report(looks, errors, seconds)
    if options.plot:
        draw(looks, errors, options.plot)


def _unit(y: Combination) -> np.ndarray:
    return y.alpha / max(y.length, 1e-300)


def report(looks: list[int], errors: dict[str, list[float]], seconds: dict[str, float]) -> None:
    print(f"| iterations | {' | '.join(errors)} |")
    print(f"|---{'|---' * len(errors)}|")
    for i, count in enumerate(looks):
        print(f"| {count} | {' | '.join(f'{100 * found[i]:.1f} %' for found in errors.values())} |")
    print(f"| seconds | {' | '.join(f'{found:.3g}' for found in seconds.values())} |")


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

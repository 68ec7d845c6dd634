"""What tests of determinism compare: sha256 over the bits of all answers and iterates."""

import hashlib
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.storage.scratch import Scratch
from dfeas.linalg.csr import is_csr
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.passes.select import Select, Selection
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.passes.vectors import Recover
from tests.records import is_record, names_of


def content(value: Any) -> bytes:
    """The bits of every number in an answer."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if is_csr(value):
        return content([value.data, value.indices, value.indptr])
    if isinstance(value, list | tuple):
        return b"".join(map(content, value))
    if isinstance(value, Selection):  # which blocks were looked at together is no bit
        return content((value.violated, value.low, value.arg, value.score, value.columns))
    if is_record(value):
        return b"".join(content(getattr(value, name)) for name in names_of(value))
    return repr(value).encode()


def digest(*answers: Any) -> str:
    return hashlib.sha256(content(answers)).hexdigest()


def iterates(engine: Any, methods: Collection[str] = tuple(METHODS)) -> str:
    """sha256 over the answers of passes of all kinds, and of 6 steps of some methods."""
    with tempfile.TemporaryDirectory() as folder:
        engine.scratch = Scratch(Path(folder))
        return _iterates(engine, methods)


def _iterates(engine: Any, methods: Collection[str]) -> str:
    m, n = engine.shape
    rng = np.random.default_rng(0)
    question = Softmin(rng.standard_normal((m, 3)), np.array([0.0, 0.05, 1.0]))
    soft = engine.run(question)
    answers = [soft, engine.run(Select(rng.standard_normal(m), -0.1, 50, 10)), engine.run(Survey())]
    for name in methods:
        method = METHODS[name]
        state = method.init(Facts(m, n, blocks=engine.dataset.blocks, itemsize=4))
        for _ in range(6):
            answer = engine.run(method.ask(state))
            answers.append(digest(answer))  # before the method takes its columns out
            state = method.tell(state, answer)
    # the last one: it takes the memory of the cache
    answers.append(engine.run(Recover(question.Y[:, 1:], question.mu[1:], soft.lse[1:], np.array([0.4, 0.6]), 1e-9)))
    return digest(*answers)

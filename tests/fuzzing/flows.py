"""Flows of Dask users: any collection, verb, way to name labels and client, beside the same points in memory."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dask
from distributed import Client

import dfeas
from tests.dask_users.flows import ARRAYS, CLIENTS, FRAMES, LABELS, REORDERED, VERBS, Flow, plain
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong


@dataclass
class Flows:
    name: str = "flows"
    weight: float = 2.0
    seconds: float = 90.0

    @cached_property
    def client(self) -> Client:
        """One for all cases; its workers are in this process, as notebooks have them."""
        dask.config.set({"distributed.admin.tick.limit": "1h"})  # a busy machine is no news
        return Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0", set_as_default=False)

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        source = str(rng.choice([*FRAMES, *ARRAYS]))
        named = [label for label in LABELS if label != "array" or source not in REORDERED]
        labels = str(rng.choice(named if source in FRAMES else ["lazy", "numpy"]))
        options = {
            "source": source,
            "labels": labels,
            "verb": str(rng.choice([*VERBS])),
            "client": str(rng.choice(CLIENTS)),
            "separable": bool(rng.random() < 0.4),
            "partitions": int(rng.integers(1, 12)),
            "seed": int(rng.integers(1000)),
        }
        return Case(self.name, seed, f"{options['verb']}-{source}", {}, options)

    def judge(self, case: Case) -> Judgement:
        flow = Flow(**case.options)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (Path(folder) / "asked").mkdir()
            expected: Any = plain(flow.expected(Path(folder)))
            try:
                found = plain(flow.asked(self.client, Path(folder) / "asked"))
            except dfeas.DfeasError as error:
                return Judgement(Word.CRASH, f"{type(error).__name__}: {error}")
        return RIGHT if flow.agree(found, expected) else wrong(f"{flow.name}: {found}, in memory {expected}")

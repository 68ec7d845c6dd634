"""A part of the gate, in this process, and what makes it one: it covers everything, and sees a bit that changes."""

import re
from pathlib import Path

import click
import numpy as np

import dfeas
from dfeas.cones.space import CONE_METHODS
from dfeas.kernels.space import KERNEL_METHODS
from tests import gate_runs
from tests.gate import changes, load, machine
from tests.gate_bench import Record, commands, digest, rows
from tests.gate_data import SOURCES
from tests.gate_runs import CASES, COMMANDS, CONES, DENSE, KERNEL

FAST = """dense/some dense/classes dense/resume people/separation people/unreadable hull/boundary sparse/words
    kernel/exponential cones/von-neumann svm/hinge data/csv python/verbs"""


def test_some_runs_end_as_they_did() -> None:
    table = load()
    here = machine() == table["machine"]
    for name, row in rows({name: CASES[name] for name in FAST.split()}, SOURCES):
        stored = table["runs"][name]
        for what in ("exit", "verdict", "stop", "proof"):
            assert (name, what, row[what]) == (name, what, stored[what])
        assert not here or row == stored, (name, changes(stored, row))


def test_the_table_has_every_run_and_no_other() -> None:
    assert load()["runs"].keys() == CASES.keys()


def test_both_engines_have_the_same_bits() -> None:
    runs = load()["runs"]
    here = ("dense/classes", "dense/resume", "kernel/race", "cones/many", "svm/hinge")
    there = ("classes", "resume", "kernel", "cones", "svm")
    for one, other in zip(here, there, strict=True):
        for what in ("bracket", "certificate"):
            assert runs[one][what] == runs[f"cluster/{other}"][what], (one, what)


COMPUTE_NOTHING = {"cancel", "config", "help"}
"""Commands without an answer that could have bits."""


def test_every_method_kernel_and_command_has_a_run() -> None:
    assert set(DENSE.split()) == dfeas.METHODS.keys()
    assert set(KERNEL.split()) == KERNEL_METHODS.keys()
    assert {*CONES.split(), "mirror-prox-euclidean"} == CONE_METHODS.keys()
    assert set(re.findall(r"--kernel (\w+)", " ".join(COMMANDS.values()))) == set(dfeas.KERNELS)
    text = Path(gate_runs.__file__).read_text()
    for command in set(commands().list_commands(click.Context(commands()))) - COMPUTE_NOTHING:
        assert re.search(rf"\b{command} [\w@{{]", text), command


def test_a_bit_that_changes_is_seen_and_what_a_run_costs_is_not() -> None:
    one = Record()
    one.result({"verdict": "feasible", "stopped": "verdict", "margin_lower": 0.1, "seconds": 1.0}, {"y": np.array([0.3, 1.0])})
    row = one.row()
    assert changes(row, row) == ("", "")
    one.certificate[0]["y"][0] = np.nextafter(0.3, 1)
    assert changes(row, one.row()) == ("", "certificate")
    one.verdict, one.bracket[0][0] = ["undecided"], np.nextafter(0.1, 1)
    assert changes(row, one.row()) == ("verdict feasible -> undecided", "bracket, certificate")
    assert digest({"seconds": 1, "reads": 2}) == digest({"seconds": 3, "reads": 2.0}) != digest({"reads": 3})

"""Processes that fork while another thread is at work: what it had locked, or begun, is neither held nor waited for there."""

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, threading, warnings
from pathlib import Path
import numpy as np
import dfeas
from dfeas.linalg.blas import controller, one_thread

warnings.simplefilter("ignore")  # Python says what this is about
where = Path(sys.argv[1])


def ended(child, seconds=60):
    '''The code of a child that does something, -14 when it did not end.'''
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        code = 9
        try:
            code = int(not child())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

SOLVING = """
rng = np.random.default_rng(0)
X = rng.standard_normal((400, 10))
labels = np.where(X @ rng.standard_normal(10) > 0, 1, -1)
wrong = labels.copy()
wrong[3] *= -1
dfeas.ingest(X, where / "data", y=labels)
done = threading.Event()


def work():
    while not done.is_set():
        dfeas.solve(X, wrong, intercept=False)
        dfeas.solve(where / "data", intercept=False)


def asked():
    return (
        dfeas.solve(X, wrong, intercept=False).verdict == "infeasible"
        and dfeas.solve(where / "data", intercept=False).verdict == "feasible"
    )


assert asked()  # what is imported while it forks is locked by Python itself
workers = [threading.Thread(target=work) for _ in range(2)]
for each in workers:
    each.start()
codes = [ended(asked) for _ in range(20)]
done.set()
for each in workers:
    each.join()
sys.exit(str(codes) if any(codes) else 0)
"""

INSIDE = """
from threadpoolctl import threadpool_limits

libraries = [each for each in controller(of_scipy=True).lib_controllers if each.user_api == "blas"]
entered, left = threading.Event(), threading.Event()


def threads():
    return {each.num_threads for each in libraries}


def stay():
    with one_thread(of_scipy=True):
        entered.set()
        left.wait(60)


def again():
    if threads() != {before}:
        return False
    with one_thread(of_scipy=True):
        inside = threads()
    return inside == {1} and threads() == {before}


with threadpool_limits(3, user_api="blas"):
    (before,) = threads()
    worker = threading.Thread(target=stay)
    worker.start()
    assert entered.wait(60)
    code = ended(again)  # somebody else is inside
    with one_thread(of_scipy=True):
        code = code or ended(lambda: threads() == {1})  # and so is this thread, which stays in there
    left.set()
    worker.join()
    assert threads() == {before}
sys.exit(code)
"""

LEAVING = """
from dfeas.engine.tile_cache import Spill

spill = Spill(where)
pid = os.fork()
if pid == 0:
    sys.exit(0)  # as a program ends, with all that it has registered
os.waitpid(pid, 0)
sys.exit(int(not spill.folder.is_dir()))
"""


@pytest.mark.parametrize("script", [SOLVING, INSIDE, LEAVING], ids=["solving", "inside", "leaving"])
def test_a_child_works_as_if_it_were_alone(script: str, tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", BEGIN + script, tmp_path], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")

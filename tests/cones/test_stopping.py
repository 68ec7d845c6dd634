"""A look at a large cone takes minutes: limits and requests to stop wait for one product of its matrices, not for a read."""

import _thread
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.cones import batch
from dfeas.cones.generate import ConeInstance
from dfeas.data.generate.points import generate
from dfeas.linalg.blas import beat
from tests.run.test_resume import run_until

PASSES = 6
OPTIONS: dict[str, Any] = {"method": "mirror-prox-fixed", "max_passes": PASSES, "margin_tolerance": 1e-4}
ORDER = 12
ROWS = ORDER * (ORDER + 1) // 2


class Steps:
    """Counts the steps within blocks. From ``endless`` on one goes on until somebody ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken, self.endless, self.interrupts = 0, 10**9, False
        monkeypatch.setattr(batch, "beat", self)

    def __call__(self, text: str = "") -> None:
        self.taken += 1
        if self.taken < self.endless:
            beat(text)
            return
        if self.interrupts:
            self.interrupts = False
            _thread.interrupt_main()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            beat(text)
        raise AssertionError("nobody ended it")


@pytest.mark.parametrize(("how", "blocks"), [("limit", 1), ("stop", 4), ("interrupt", 1)])  # read by threads, or by this one
def test_a_run_ends_within_a_block_and_goes_on_from_the_read_before(
    how: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(ConeInstance("cones", 6, f"s:{ORDER}x16", 0.01, block_rows=16 // blocks * ROWS), tmp_path / "data")
    steps = Steps(monkeypatch)
    whole = dfeas.solve(tmp_path / "data", **OPTIONS)
    assert whole.passes == PASSES
    steps.taken, steps.endless, steps.interrupts = 0, steps.taken * 5 // (2 * PASSES), how == "interrupt"
    if how == "interrupt":
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            dfeas.solve(tmp_path / "data", out=tmp_path / "run", **OPTIONS)
        signal.signal(signal.SIGINT, before)
    else:
        stop = (lambda: False) if how == "limit" else (lambda: steps.taken >= steps.endless)
        limit = 0.5 if how == "limit" else None
        cut = run_until(stop, dfeas.solve, tmp_path / "data", out=tmp_path / "run", time_limit=limit, **OPTIONS)
        assert (cut.verdict, cut.stopped) == ("undecided", "time_limit" if how == "limit" else "interrupted")
        assert cut.passes <= 2
    assert steps.taken <= steps.endless + blocks  # each thread ends in the step that it is in
    steps.endless = 10**9
    gone_on = dfeas.resume(tmp_path / "run", **({"time_limit": 600.0} if how == "limit" else {}))
    assert gone_on.passes == PASSES
    assert (gone_on.margin_lower, gone_on.margin_upper) == (whole.margin_lower, whole.margin_upper)
    np.testing.assert_array_equal(gone_on.separator, whole.separator)

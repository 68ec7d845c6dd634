"""Data larger than its memory budget, on a laptop: is there a separator through the origin, how wide is its margin?

python scripts/example_laptop.py [POINTS]
"""

import sys
import tempfile
from pathlib import Path

import dfeas

points = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
with tempfile.TemporaryDirectory() as folder:
    data = Path(folder) / "data"
    dfeas.generate(dfeas.Instance("planted", m=50, n=points, margin=0.02), data)
    result = dfeas.solve(data, intercept=False, memory="64MB", out=Path(folder) / "run")
    print(f"{result.verdict} ({result.proof}) after {result.reads:.3g} reads in {result.seconds:.2f} s")
    widest = dfeas.hard_margin(data, intercept=False, memory="64MB", margin_tolerance=1e-3)
    print(f"the best margin is {widest.result.margin_lower:.5f} .. {widest.result.margin_upper:.5f}")
    print(dfeas.verify_run(Path(folder) / "run").message)

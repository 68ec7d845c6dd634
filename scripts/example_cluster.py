"""The same question on a Dask cluster: one of two processes here, or the one at an address, whose workers see FOLDER.

python scripts/example_cluster.py [ADDRESS FOLDER]
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from distributed import Client, LocalCluster

import dfeas


def main(words: list[str]) -> None:
    """Solve there and here."""
    with ExitStack() as stack:
        if words:
            client, folder = stack.enter_context(Client(words[0])), Path(words[1])
        else:
            client = stack.enter_context(
                Client(stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")))
            )
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dfeas.generate(dfeas.Instance("one-flip", m=20, n=50_000, margin=0.05), folder / "data")
        there = dfeas.solve(folder / "data", client=client)
        here = dfeas.solve(folder / "data")
        same = there.weights is not None and here.weights is not None and there.weights.tobytes() == here.weights.tobytes()
        print(f"on the cluster: {there.verdict}, {there.detail}")
        print(f"the same bits as in one process: {same}")


if __name__ == "__main__":  # worker processes read this file, too
    main(sys.argv[1:])

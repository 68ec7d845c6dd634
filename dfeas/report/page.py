"""``dfeas.report``: one page about finished runs, that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import paths_of
from dfeas.errors import UsageError, install
from dfeas.report.compare import all_soft, load_soft
from dfeas.report.margins import NOT_READ, look
from dfeas.run.result_files import Run, certificate_of, find_runs, load_run
from dfeas.settings import parse_bytes

_TAG = b'<meta name="generator" content="dfeas report">'
_HEAD_BYTES = 1000


def report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    memory: str | int | None = None,
    data: bool = True,
) -> Path:
    """Write one page about finished runs, that opens offline.

    Parameters
    ----------
    runs : path, or sequence of paths
        Folders of runs; one that holds runs in its direct subfolders stands for all of them. Soft margins are not reported with
        others.
    out : path, optional
        The page; by default ``report.html`` in the folder, when a single one is given. A page of ours is replaced.
    memory : int or str
        Budget in bytes for reading the data.
    data : bool
        Whether to read the data once for the distances of the points from the final hyperplane.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    UsageError
        Without matplotlib, without ``out`` for several folders, or when ``out`` is a file that is not ours.
    BadInputError
        There is no finished run.
    CorruptDataError
        Files of a run are missing or damaged. Data that has gone is said on the page.

    Examples
    --------
    Drawing takes a second or two:

    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], out="run")
    >>> dfeas.report(["run"])  # doctest: +SKIP
    PosixPath('run/report.html')
    """
    if find_spec("matplotlib") is None:
        raise UsageError(f"dfeas report needs matplotlib: {install('report')}")
    from dfeas.report.soft_margins import soft_page  # they draw
    from dfeas.report.verdicts import page

    runs = paths_of(runs, "runs")
    budget, folders = parse_bytes(memory), find_runs(runs)
    soft = all_soft(folders)
    finished = [_soft_run(name, folder) if soft else load_run(name, folder) for name, folder in folders.items()]
    target = _target(runs, out)
    seen = look(finished, budget) if data else {run.name: NOT_READ for run in finished}
    text = soft_page(finished, seen) if soft else page(finished, seen)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def _soft_run(name: str, folder: Path) -> Run:
    """A soft margin, whose passes are read with its page."""
    values = load_soft(folder)
    return Run(folder, name, values, (), (), certificate_of(folder, values))


def _target(runs: Sequence[str | Path], out: str | Path | None) -> Path:
    """Where the page goes; raises UsageError when it may not."""
    if out is None and len(runs) != 1:
        raise UsageError("several runs: say where the page goes, with --out FILE")
    target = Path(runs[0]) / "report.html" if out is None else Path(out)
    if not target.parent.is_dir():
        raise UsageError(f"{target}: no such folder")
    if target.is_dir():
        raise UsageError(f"{target}: a folder; give the name of a file")
    if target.exists():
        with target.open("rb") as file:
            if _TAG not in file.read(_HEAD_BYTES):
                raise UsageError(f"{target}: exists already and is no report of dfeas; choose another name with --out")
    return target

"""The page about runs, and ``dfeas report``, which writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from dfeas.data.storage.files import placed
from dfeas.errors import UsageError
from dfeas.problem import DEFAULT_MEMORY, parse_bytes
from dfeas.report import figures
from dfeas.report.compare import COLUMNS, WORDS, all_soft, cells, row, warning
from dfeas.report.figures import FLOOR, data_uri, style
from dfeas.report.html import Html, document, element, joined
from dfeas.report.margins import NOT_READ, Margins, margins
from dfeas.report.section import picture, section
from dfeas.run.results import Run, find_runs, load_run


def page(runs: Sequence[Run], margins: Mapping[str, Margins | str]) -> str:
    """The whole page: a comparison when there are several runs, then each run."""
    many = len(runs) > 1
    title = f"{len(runs)} runs" if many else f"{runs[0].name}: {runs[0].values['verdict']}"
    with style():
        parts = [_comparison(runs)] if many else []
        parts += [section(run, margins.get(run.name), f"run-{i}") for i, run in enumerate(runs, 1)]
    return document(title, *parts)


def _comparison(runs: Sequence[Run]) -> Html:
    """The table of all runs and their brackets over each other."""
    rows = [row(run.name, run.folder, run.values) for run in runs]
    differ = warning(rows)
    headings = [element("th", text, class_="word" if i < WORDS else "number") for i, text in enumerate(COLUMNS)]
    lines = [element("tr", *headings)]
    for number, one in enumerate(rows, 1):
        texts = cells(one)
        linked = element("td", element("a", texts[0], href=f"#run-{number}"))
        others = [element("td", text, class_="word" if i < WORDS else "number") for i, text in enumerate(texts) if i]
        lines.append(element("tr", linked, *others))
    return element(
        "section",
        element("h2", "Comparison"),
        *([element("p", f"Beware: {differ}.", class_="warning")] if differ else []),
        element("div", element("table", *lines), class_="wide"),
        element("h3", "Brackets of all runs"),
        _overlay(runs),
    )


def _overlay(runs: Sequence[Run]) -> Html:
    with_passes = {run.name: run.records for run in runs if run.records}
    if not with_passes:
        return element("p", "No run made a pass: there is nothing to draw.", class_="soft")
    eps = [run.values["eps"] for run in runs]
    pictures = [
        picture(
            data_uri(figures.bracket(figures.overlay(with_passes, name), label, eps)),
            f"Against {name}",
            f"Brackets of the runs against {name}",
        )
        for name, label in (("passes", "passes over the data"), ("seconds", "seconds since the start"))
    ]
    said = f"Upper ends solid, lower ends dashed. Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}."
    return joined(element("div", *pictures, class_="figures"), element("p", said, class_="soft"))


_TAG = b'<meta name="generator" content="dfeas report">'
_HEAD_BYTES = 1000


def report(
    runs: Sequence[str | Path], out: str | Path | None = None, *, memory: str | int = DEFAULT_MEMORY, data: bool = True
) -> Path:
    """Write one page about finished runs, and return its path.

    Parameters
    ----------
    runs : folders of runs; one that holds runs in its direct subfolders stands for all of them. Soft margins are not reported
        with others.
    out : the page; by default ``report.html`` in the folder, when a single one is given. A page of ours is replaced.
    memory : budget in bytes for reading the data.
    data : whether to read the data once for the distances of the points from the final hyperplane.

    Raises
    ------
    UsageError : without matplotlib, without ``out`` for several folders, or when ``out`` is a file that is not ours.
    BadInputError : where there is no finished run.
    CorruptDataError : when files of a run are missing or damaged. Data that has gone is said on the page.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("dfeas report needs matplotlib: pip install 'dfeas[report]'")
    budget = parse_bytes(memory)
    folders = find_runs(runs)
    if all_soft(folders):
        from dfeas.report.soft_page import soft_page

        return _written(_target(runs, out), soft_page(folders))
    found = [load_run(name, folder) for name, folder in folders.items()]
    target = _target(runs, out)
    distances: dict[str, Margins | str] = margins(found, budget) if data else {run.name: NOT_READ for run in found}

    return _written(target, page(found, distances))


def _written(target: Path, text: str) -> Path:
    with placed(target) as file:
        file.write(text.encode())
    return target


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

"""``dfeas.predict``: scores and classes of points by a finished run, compared with labels, or written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.answers.base import Predictor
from dfeas.answers.prediction.scores import read_once, require_name, write_scores
from dfeas.data.storage.outputs import SCORES, replace_output
from dfeas.data.storage.places import local, place
from dfeas.data.writers.dataset import Progress
from dfeas.errors import UsageError
from dfeas.problem import Function
from dfeas.records import replace
from dfeas.run.progress.terminal import who_is_told
from dfeas.settings import require_type

if TYPE_CHECKING:
    from dfeas.geometry.prediction import Prediction
from dfeas.answers.prediction.model import FittedModel, read_points


def predict(
    run: str | Path | Predictor,
    X: Any,
    y: Any = None,
    *,
    out: str | Path | None = None,
    force: bool = False,
    positive: str | None = None,
    kernel: Function | None = None,
    memory: str | int | None = None,
    progress: bool | Progress | None = None,
    follow: bool = False,
) -> Prediction | Any:
    """Score points by the best direction of a run, or by those of all classes of a one-vs-rest run, in one read.

    Parameters
    ----------
    run : result, or path
        A run of ``dfeas.solve`` or ``dfeas.soft_margin`` that left a direction. With a kernel its data is read again for the
        points of the expansion.
    X : array (n, m), data frame, path, or cones
        What ``dfeas.solve`` takes; of a table features are found by name, and the points are named by
        ``id`` of ``dfeas.table``, or by the column that named those of the run's file or dataset, if it is there.
    y : array (n,), path, or str, optional
        Labels to compare with the scores. By default the column of a frame or table that is called as the labels of the run;
        where that is not known, as they were beside the points, the column that is no feature of it, if there is one only.
    out : path, optional
        A .npy file for the scores (n,), float64, or for the classes (n,), int16, of a one-vs-rest run; or a .csv or .parquet
        file or a .zarr folder with ``score`` and ``class``, and ``id`` if points have ids. It appears when it is whole;
        only some blocks are in memory.
    force : bool
        Replace what such a call has written to ``out``, once the new one is written.
    positive : str, optional
        The class that counts as +1, as for ``dfeas.solve``.
    kernel : callable, optional
        The Python function that was the kernel, if one was.
    memory : int or str
        Budget in bytes for blocks, and for the scores of some of them.
    progress : bool, or callable, optional
        Show how many points are in ``out``, or call this with both numbers; by default the setting.
    follow : bool
        Read the points of an expansion at a URL that only the run names: who wrote its files would choose where requests go,
        which are signed with your credentials.

    Returns
    -------
    Prediction or ConePrediction
        Scores and classes, unless they are in ``out``; for cones the least eigenvalue of each, over its norm.

    Raises
    ------
    UsageError
        ``run`` is no such run, ``positive`` is given with a run of all classes, or ``out`` has another suffix; or the files
        of the run say that the points of its expansion are at a URL, and ``follow`` is not given.
    BadInputError
        The run has no direction, or the points have other features or classes, or are not finite.

    Examples
    --------
    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1])
    >>> answer = dfeas.predict(result, [[3.0, 3.0], [-2.0, 0.5]], [1, -1])
    >>> answer.accuracy, answer.confusion
    (1.0, [[1, 0], [0, 1]])
    """
    if not isinstance(run, Predictor | str | Path):
        kind = type(run).__name__
        hint = f"; {kind} has one in .result" if isinstance(getattr(run, "result", None), Predictor) else ""
        raise UsageError(f"run: expected a result of solve or soft_margin, or its folder, got {kind}{hint}")
    require_type("out", out, "str | Path | None")
    require_type("kernel", kernel, "Callable | None")
    require_type("force", force, "bool")
    require_type("follow", follow, "bool")
    file = None if out is None else local(out, "out")
    if file is not None:
        require_name(file, X, y)
    model = run.to_model() if isinstance(run, Predictor) else FittedModel.load(place(run))
    model = replace(model, follow=model.follow or follow)
    if model.classes is not None and positive is not None:
        raise UsageError(f"{model.name}: a run of all classes; leave out positive")
    dataset, seen, rule = read_points(model, X, memory, y, positive, kernel)
    if file is not None:
        with replace_output(file, SCORES, force):
            return write_scores(seen, rule, memory, file, who_is_told(progress))
    answer: Prediction | Any = rule.prediction(read_once(seen, rule, memory), dataset)
    return answer if seen.ids is None else replace(answer, ids=seen.ids.columns()(seen.n))

"""Names of tasks: Dask's pages show a bar and a colour for each ``dask.utils.key_split`` of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dfeas.engine.scan import scan_range
from dfeas.passes.protocol import OfClass, OnVectors, Ordered, Partial, Together

CHECK = "check"
"""Whatever is not a scan of ours is the checker's."""


def task_name(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What a function does with blocks, in letters and dashes: of a scan the question, its first argument."""
    return question_name(args[0]) if function is scan_range else CHECK


def question_name(question: Any) -> str:
    """``softmin``, ``sample``, ``survey-moments``, ..: the classes of what is asked, each once."""
    if isinstance(question, Partial):
        return "sample"
    if isinstance(question, Together):
        return "-".join(dict.fromkeys(question_name(each) for each in question.passes))
    if isinstance(question, OfClass | OnVectors):
        return question_name(question.pass_)
    if isinstance(question, Ordered):
        return question_name(question.fold)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(question).__name__).strip("_").lower()

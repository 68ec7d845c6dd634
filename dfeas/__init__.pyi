"""Written by scripts/signatures: change dfeas/problem.py or the call itself, and run that again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from distributed import Client
from distributed.deploy import Cluster
from numpy.typing import ArrayLike

from dfeas.data.ingest.ingest import Note
from dfeas.data.storage.layout import Header
from dfeas.data.writers.dataset import Progress
from dfeas.geometry.kernel.kernel import Function
from dfeas.analysis.hard_margin import HardMargin as HardMargin
from dfeas.analysis.hull import Hull as Hull
from dfeas.analysis.info import Info as Info
from dfeas.analysis.info import info as info
from dfeas.analysis.load import load as load
from dfeas.analysis.regression.answer import Separated as Separated
from dfeas.analysis.separation import Separation as Separation
from dfeas.analysis.verify import verify_classes as verify_classes
from dfeas.analysis.verify import verify_run as verify_run
from dfeas.cli.remote import cancel as cancel
from dfeas.cli.remote import fetch as fetch
from dfeas.cli.remote import status as status
from dfeas.data.cones import svec as svec
from dfeas.data.generate.points import Instance as Instance
from dfeas.data.generate.points import generate as generate
from dfeas.data.writers.cones import from_cone_rows as from_cone_rows
from dfeas.data.writers.cones import from_scs as from_scs
from dfeas.data.writers.cones import ingest_cone_rows as ingest_cone_rows
from dfeas.errors import BadInputError as BadInputError
from dfeas.errors import CheckFailedError as CheckFailedError
from dfeas.errors import CorruptDataError as CorruptDataError
from dfeas.errors import DfeasError as DfeasError
from dfeas.errors import UndecidedError as UndecidedError
from dfeas.errors import UsageError as UsageError
from dfeas.geometry.cones.space import CONE_METHODS as CONE_METHODS
from dfeas.geometry.kernel.space import KERNEL_METHODS as KERNEL_METHODS
from dfeas.geometry.prediction import ClassPrediction as ClassPrediction
from dfeas.geometry.prediction import ConePrediction as ConePrediction
from dfeas.geometry.prediction import Prediction as Prediction
from dfeas.methods.registry import METHODS as METHODS
from dfeas.problem import Goal as Goal
from dfeas.problem import Kernel as Kernel
from dfeas.problem import Objective as Objective
from dfeas.problem import Problem as Problem
from dfeas.problem import View as View
from dfeas.report.compare import compare as compare
from dfeas.report.page import report as report
from dfeas.run.estimate import Plan as Plan
from dfeas.run.prediction import predict as predict
from dfeas.run.resources import Limits as Limits
from dfeas.run.resources import Output as Output
from dfeas.run.resources import Resources as Resources
from dfeas.run.results import Result as Result
from dfeas.run.soft_margin.result import SoftMarginClasses as SoftMarginClasses
from dfeas.run.soft_margin.result import SoftMarginResult as SoftMarginResult
from dfeas.run.verdict import OneVsRest as OneVsRest
from dfeas.run.verdict import Race as Race
from dfeas.verify.certificate import Certificate as Certificate
from dfeas.verify.certificate import Check as Check

__version__: str
__all__: list[str]
KERNELS: tuple[str, ...]
def check_separation(
    X: Any,
    y: Any = ...,
    *,
    intercept: bool = ...,
    outcome: str | None = ...,
    positive: Any = ...,
    weights: Any = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
) -> Separated: ...
def hard_margin(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    point: Any = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> HardMargin: ...
def in_hull(
    point: ArrayLike | str | Path,
    X: Any,
    *,
    eps: float = ...,
    method: str = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Hull: ...
def separation(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Separation: ...
def verify_certificate(
    path: str | Path,
    certificate: str | Path,
    *,
    memory: str | int | None = ...,
    kernel: Function | None = ...,
    quick: bool = ...,
    labels: Any = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
) -> Check: ...
def ingest(
    src: Any,
    out: str | Path,
    *,
    client: Client | Cluster | str | bool | None = ...,
    progress: Progress | None = ...,
    note: Note | None = ...,
    points: str = ...,
    labels: str | Any = ...,
    label_column: str | None = ...,
    positive: str | None = ...,
    format: str | None = ...,
    header: bool | None = ...,
    features: int | None = ...,
    dtype: str | None = ...,
    zero_based: bool = ...,
    sparse: bool | None = ...,
    block_rows: int | None = ...,
    shard: str | int | None = ...,
) -> Header: ...
def race(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    methods: str | Sequence[str],
    to_the_end: bool = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Race: ...
def resume(
    run: str | Path,
    X: Any = ...,
    labels: Any = ...,
    *,
    mask: Any = ...,
    kernel: Any = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Result | Race | OneVsRest | SoftMarginResult | HardMargin | Separation: ...
@overload
def soft_margin(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: Literal[False] = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    C: float | Sequence[float] = ...,
    loss: Literal['hinge', 'squared_hinge'] = ...,
    gap: float = ...,
    folds: int = ...,
    class_weight: str | Sequence[float] | None = ...,
    weights: Any = ...,
    seed: int = ...,
    dual: str | Path | None = ...,
    start: Any = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> SoftMarginResult: ...
@overload
def soft_margin(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: Literal[True],
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    C: float | Sequence[float] = ...,
    loss: Literal['hinge', 'squared_hinge'] = ...,
    gap: float = ...,
    folds: int = ...,
    class_weight: str | Sequence[float] | None = ...,
    weights: Any = ...,
    seed: int = ...,
    dual: str | Path | None = ...,
    start: Any = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> SoftMarginClasses: ...
@overload
def soft_margin(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    C: float | Sequence[float] = ...,
    loss: Literal['hinge', 'squared_hinge'] = ...,
    gap: float = ...,
    folds: int = ...,
    class_weight: str | Sequence[float] | None = ...,
    weights: Any = ...,
    seed: int = ...,
    dual: str | Path | None = ...,
    start: Any = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> SoftMarginResult | SoftMarginClasses: ...
@overload
def solve(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: Literal[False] = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    point: Any = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Result: ...
@overload
def solve(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: Literal[True],
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    point: Any = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> OneVsRest: ...
@overload
def solve(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    point: Any = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    client: Client | Cluster | str | bool | None = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    callback: Callable[[Any], object] | None = ...,
    stop: Callable[[], bool] = ...,
) -> Result | OneVsRest: ...
def submit(
    X: str | Path,
    labels: str | Path | None = ...,
    *,
    out: str | Path,
    client: Any = ...,
    C: float | Sequence[float] | None = ...,
    method: str = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    point: Any = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    eps: float = ...,
    margin_tolerance: float | None = ...,
    max_passes: int | None = ...,
    time_limit: float | None = ...,
    memory: str | int | None = ...,
    cache_dir: str | Path | None = ...,
    scratch: str | Path | None = ...,
    checkpoint_every: float = ...,
    loss: Literal['hinge', 'squared_hinge'] = ...,
    gap: float = ...,
    folds: int = ...,
    class_weight: str | Sequence[float] | None = ...,
    weights: Any = ...,
    seed: int = ...,
    dual: str | Path | None = ...,
    start: Any = ...,
) -> str: ...
def plan(
    X: Any,
    labels: Any = ...,
    *,
    y: Any = ...,
    method: str | None = ...,
    margin: float = ...,
    C: float | Sequence[float] | None = ...,
    loss: Literal['hinge', 'squared_hinge'] = ...,
    folds: int = ...,
    intercept: bool | None = ...,
    positive: str | None = ...,
    one_vs_rest: bool = ...,
    also: str | Path | Sequence[str | Path] = ...,
    mask: Any = ...,
    scale: Literal['maxabs', 'std'] | None = ...,
    center: bool = ...,
    normalize: bool = ...,
    kernel: str | Callable[..., Any] | None = ...,
    gamma: float | None = ...,
    degree: int | None = ...,
    coef0: float | None = ...,
    memory: str | int | None = ...,
) -> Plan: ...

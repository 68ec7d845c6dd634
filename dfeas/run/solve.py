"""From a question to its answer: open the data, choose methods, carry out the run; or go on with an earlier one."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from dfeas.answers.files import CHECKPOINT, RACE, RESULT, RUN, versions
from dfeas.data.collections import see_once
from dfeas.data.dataset import Dataset
from dfeas.data.frames import bring_here, require_aligned
from dfeas.data.open import find_columns
from dfeas.data.source import DataSpec
from dfeas.data.storage.outputs import replace_output
from dfeas.data.storage.patience import ends_at
from dfeas.data.storage.places import Place, place, require_apart
from dfeas.engine.protocol import open_client
from dfeas.errors import BadInputError, CorruptDataError, UsageError, brief, either, log_warning, spell, visible
from dfeas.geometry.protocol import Geometry, Load, facts_of
from dfeas.geometry.registry import geometry_of, kernel_options, known_method
from dfeas.methods.protocol import WRITTEN, AnyMethod, Method, Traits, missing_functions
from dfeas.methods.registry import FOR_CONES, FOR_KERNELS, METHODS, SOFT_MARGINS, base_name
from dfeas.problem import KERNELS, Goal, Objective, Problem
from dfeas.records import replace
from dfeas.run.checkpoint.folder import Checkpoint, Checkpoints, is_finished, require_free, run_folder, run_folder_again
from dfeas.run.cost import abreast, bound_passes, choose_method, limit_passes
from dfeas.run.execute import execute
from dfeas.run.resources import Limits, Output, Resources, RunOptions
from dfeas.run.session import Session, open_session, scratch_of
from dfeas.run.solver_thread import open_in_time
from dfeas.run.spec import (
    SOLVABLE,
    WIDEST,
    Request,
    RunSpec,
    classes_to_share,
    method_for,
    options_of,
    require_labels,
    require_memory,
)
from dfeas.settings import require_type

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers


@contextmanager
def run_terms(
    max_passes: int | None,
    time_limit: float | None,
    memory: str | int | None,
    client: Workers | None,
    out: str | Path | None,
    callback: Callable[[Any], object] | None,
    force: bool = False,
    *,
    again: bool = False,
) -> Iterator[tuple[Limits, Resources, Output]]:
    """The arguments that all verbs share as values, while the client that they name is open; with ``force`` the output makes
    room for the new one. A run that goes on ``again`` has limits of its own where none are given.
    """
    require_type("force", force, "bool")
    limits = (Limits if again else Limits.begun)(max_passes=max_passes, time_limit=time_limit)
    output = Output(out=out, callback=callback)
    with ends_at(limits.ends), see_once(), ExitStack() as stack:
        with open_in_time():
            workers = stack.enter_context(open_client(client))
            stack.enter_context(replace_output(None if out is None else place(out), RUN, force))
        yield limits, Resources(memory=memory, client=workers), output


def decide(
    problem: Problem,
    methods: str | AnyMethod | Sequence[str | AnyMethod],
    goal: Goal,
    limits: Limits,
    resources: Resources,
    output: Output,
    *,
    race: bool = False,
    first: bool = False,
    then: str = "",
    start: Any = None,
) -> Any:
    """A Result, Race or OneVsRest; ``then`` is what it is for, which a run that goes on later goes on to."""
    given, spec = _several(methods) if race else _name_methods([_require_method(methods)]), problem.spec
    own = {name: method for name, method in given.items() if method is not None}
    methods, space = tuple(given), kernel_options(problem.kernel, resources.scratch)
    for method in methods if race or space is None else ():
        if method not in own:
            known_method(method, space, () if race else ("auto",))
    request = Request.begun(goal.of_methods(methods), limits, resources)
    last = RACE if race else RESULT
    if spec.transform and output.out is not None:  # its numbers take reads
        require_free(place(output.out), last)
    with ExitStack() as stack:
        stack.enter_context(open_in_time())
        opened = open_session(problem, resources, output.out, cones=not spec.one_vs_rest, progress=output.shows_progress)
        session = stack.enter_context(opened)
        require_labels(spec, session.dataset)
        geometry = geometry_of(session.dataset, space).with_methods(own)
        resumable = output.out is None or all(_is_written(geometry, session.dataset, name) for name in own)
        session = replace(session, own=own, resumable=resumable)
        classes: tuple[str, ...] = ()
        if spec.one_vs_rest:
            classes = classes_to_share(session.dataset)
        asked = replace(request, margin_tolerance=None) if then == WIDEST else request
        geometry, names, whys, asked = _choose_methods(session, geometry, methods, asked, classes, race)
        said = OWN if resumable else f"{OWN}, and the run cannot go on later"
        whys = tuple(f"{why}{said * (name in own)}" for name, why in zip(names, whys, strict=True))
        begin = None
        if start is not None:
            from dfeas.run.start import find_start

            begin = find_start(start, session.dataset, geometry, facts_of(session.dataset, asked.memory), names[0], whys[0])
            if begin is not None:
                whys = (f"{whys[0]}; begins from {start if isinstance(start, str | Path) else 'a result'}",)
        folder = None if output.out is None else stack.enter_context(run_folder(place(output.out), last))
        asked, data = replace(asked, margin_tolerance=goal.margin_tolerance), session.source.spec.without_memory()
        job = RunSpec(asked, names, whys, race, bool(classes) or (race and not first), data)
        job = replace(job, kernel=geometry.text, classes=classes, start=begin, then=then)
        return execute(session, job, RunOptions.of(resources.checkpoint_every, output), folder)


OWN = "; it is the caller's: verdicts are checked, its bracket is as it says"


def _several(methods: Any) -> dict[str, AnyMethod | None]:
    """Those of a race. Raises UsageError for what is none."""
    several = [name for name in methods.split(",") if name.strip()] if isinstance(methods, str) else methods
    if not isinstance(several, Sequence) or not all(isinstance(each, str) or _is_method(each) for each in several):
        raise UsageError(
            f"methods {brief(methods)}: expected names, in a list or with commas between them, or methods of your own"
        )
    return _name_methods(several)


def _require_method(method: str | AnyMethod | Sequence[str | AnyMethod]) -> str | AnyMethod:
    """One, by name or of the caller. Raises UsageError for what is neither."""
    if isinstance(method, str) or _is_method(method):
        return method
    raise UsageError(
        f"method={brief(method)}: expected text, the name of a method, or a method of your own: an object of a class below "
        f"{Method.__module__}.Method"
    )


def _name_methods(several: Sequence[str | AnyMethod]) -> dict[str, AnyMethod | None]:
    """By name, those of the caller with what they are. Raises UsageError for names that none may have, and for what is there
    twice or has not all functions.
    """
    named = [(each.strip(), None) if isinstance(each, str) else (each.traits.name, each) for each in several]
    for name, own in named:
        if own is not None and (missing := missing_functions(own)):
            raise UsageError(
                f"method {name}: it has no {' and no '.join(missing)}; a method is a class below "
                f"{Method.__module__}.Method with {', '.join(WRITTEN)} of its own"
            )
        if own is not None and (name in (*METHODS, *FOR_CONES, "auto") or not re.fullmatch(r"\w[\w-]*", name)):
            raise UsageError(f"method {name!r}: expected a name of letters, digits and dashes that no method of dfeas has")
    if not named or len(dict(named)) < len(named):
        raise UsageError(f"methods {','.join(name for name, _ in named)}: expected at least one, each once")
    return dict(named)


def _is_written(geometry: Geometry, dataset: Dataset, name: str) -> bool:
    """Whether a checkpoint can hold the state of a method, as it is at the beginning."""
    memory = dataset.bytes
    method = geometry.maker(dataset, memory)(name)
    try:
        from dfeas.run.checkpoint.codec import dump

        dump(method.to_values(method.init(facts_of(dataset, memory))), io.BytesIO())
    except TypeError:
        return False
    return True


def _own_again(run: Place, job: RunSpec, method: Any) -> dict[str, AnyMethod]:
    """The methods of the caller that a run had, by name. Raises UsageError where they are not those."""
    several = [] if method is None else [method] if _is_method(method) else method
    if not isinstance(several, Sequence) or not all(map(_is_method, several)):
        raise UsageError(f"{run}: method is for methods of your own that the run had, got {method!r}")
    given = {name: own for name, own in (_name_methods(several) if several else {}).items() if own is not None}
    known = (*METHODS, *FOR_KERNELS, *FOR_CONES, *SOFT_MARGINS)
    needed = [name for name in job.methods if base_name(name) not in known]
    if missing := [name for name in needed if name not in given]:
        again = either("give it again: method=..", "go on in Python: dfeas.resume(RUN, method=..)")
        raise UsageError(f"{run}: {', '.join(missing)} is a method of yours, which the run needs; {again}")
    if more := [name for name in given if name not in needed]:
        raise UsageError(f"{run}: {', '.join(more)} is none of its methods, {', '.join(job.methods)}: leave it out")
    return given


def _is_method(value: object) -> TypeGuard[AnyMethod]:
    return isinstance(getattr(value, "traits", None), Traits) and not isinstance(value, type)


def _choose_methods(
    session: Session, geometry: Geometry, methods: Sequence[str], request: Request, classes: tuple[str, ...], race: bool
) -> tuple[Geometry, tuple[str, ...], tuple[str, ...], Request]:
    """The geometry with all its parameters, methods, why each of them, and fewer passes where memory asks for that."""
    dataset, count, several = session.dataset, 1, f", in a race of {len(methods)}" if race else ""
    if classes:
        count = abreast(geometry, methods[0], len(classes), dataset, request.memory)
        waiting = f", {count} at a time for want of memory" if count < len(classes) else ""
        several = f", {len(classes)} classes on the same reads{waiting}"
    share, threads = request.memory // len(methods), session.threads * max(1, session.workers)
    load = Load(dataset, share, threads, count, request.margin)
    chosen = [choose_method(geometry, method, load, request.margin_tolerance, bool(classes)) for method in methods]
    names = tuple(name for name, _ in chosen)
    costs = {name: geometry.cost(name, load) for name in names}
    limit, limited = limit_passes(costs, share // count, request.max_passes)
    if request.eps is None and request.max_passes is None:
        bound, bounded = bound_passes(costs, widest=request.margin_tolerance is not None)
        limit, limited = (bound, bounded) if limit is None or bound < limit else (limit, limited)
    geometry, resolved = geometry.resolve(session.engine, dataset)
    tail = f"{several}{limited}{resolved}" if race else f"{limited}{resolved}{several}"
    return geometry, names, tuple(f"{why}{tail}" for _, why in chosen), replace(request, max_passes=limit)


def minimise(problem: Problem, objective: Objective, method: str, limits: Limits, resources: Resources, output: Output) -> Any:
    """A SoftMarginResult, or SoftMarginClasses where each class is set against the rest."""
    require_type("method", method, "str")
    request = Request.begun(Goal(), limits, resources)
    dual = None
    if objective.dual is not None:
        from dfeas.run.soft_margin.dual import dual_place

        dual = dual_place(objective.dual, output.out)
        require_apart(dual, problem.spec.where)
    objective = replace(objective, weights=bring_here(objective.weights))
    if problem.spec.transform and output.out is not None:  # its numbers take reads
        require_free(place(output.out))
    with ExitStack() as stack:
        stack.enter_context(open_in_time())
        session = stack.enter_context(open_session(problem, resources, output.out, progress=output.shows_progress))
        dataset, classes = session.dataset, tuple[str, ...]()
        require_labels(problem.spec, dataset)
        if problem.spec.mask is None:
            require_aligned(problem.spec.where, objective.weights, "weights", dataset.names)
        if problem.spec.one_vs_rest:
            classes = classes_to_share(dataset)
            if objective.weights_of_classes is None:
                raise UsageError("balanced weights are of two classes: give weights of points")
        elif len(dataset.classes) > 2:
            raise UsageError(f"{dataset.where} has {len(dataset.classes)} classes: set one against the rest with positive")
        from dfeas.answers.base import Predictor  # which a look at dfeas.solve does not wait for

        if isinstance(objective.start, str | Path | Predictor):
            from dfeas.run.start import find_hyperplanes

            known = find_hyperplanes(objective.start, dataset, geometry_of(dataset), classes)
            objective = replace(objective, start=known)
        options = options_of(dataset, objective, dual, len(classes))
        name, why = method_for(method, options, dataset.n, shared=bool(classes))
        require_memory(dataset, options, request.memory)
        folder = None if output.out is None else stack.enter_context(run_folder(place(output.out)))
        data = session.source.spec.without_memory()
        job = RunSpec(request, (name,), (why,), race=False, to_the_end=True, data=data, soft=options, classes=classes)
        return execute(session, job, RunOptions.of(resources.checkpoint_every, output), folder)


def go_on(
    run: Place, problem: Problem, limits: Limits, resources: Resources, output: Output, method: Any = None
) -> tuple[Any, RunSpec, Problem, Limits, Resources]:
    """The answer of a run that went on, and what it was asked, for what follows from it. The data of ``problem`` is that of the
    checkpoint where it has none; it is seen as in the run, but for a mask. Limits that are None, and the memory, are those of
    the run.
    """
    if not run.is_dir():
        raise BadInputError(f"{run}: no such run")
    if is_finished(run):
        raise BadInputError(f"{run}: the run is finished, nothing to resume")
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder_again(run))
        earlier = Checkpoints(folder / CHECKPOINT).load(scratch_of(folder))
        if not isinstance(earlier, Checkpoint):
            raise CorruptDataError(f"{folder / CHECKPOINT}: not a checkpoint of a run")
        _warn_of_versions(run, earlier)
        job = earlier.job
        if job.then == SOLVABLE:
            raise BadInputError(
                f"{run}: a run of feasible that was cut off cannot go on: ask again with {spell('force', True)}"
            )
        named = not job.kernel or json.loads(job.kernel)["name"] in KERNELS
        if problem.kernel is not None and (named or problem.function is None):
            raise UsageError(f"{run}: kernel is for the Python function that was the kernel of a run; leave it out")
        own = _own_again(run, job, method)
        problem = Problem(_as_asked(run, job.data, problem.spec), problem.kernel)
        limits = Limits(
            max_passes=job.asked.max_passes if limits.max_passes is None else limits.max_passes,
            time_limit=job.asked.time_limit if limits.time_limit is None else limits.time_limit,
            began=limits.began - earlier.seconds,
        )
        resources = replace(resources, memory=job.asked.memory)
        stack.enter_context(open_in_time())
        opened = open_session(problem, resources, folder, cones=True, progress=output.shows_progress)
        session = replace(stack.enter_context(opened), own=own)
        if job.classes and session.dataset.classes != job.classes:
            raise CorruptDataError(f"{session.dataset.where}: its classes are not those that this run began with")
        request = replace(job.asked, max_passes=limits.max_passes, time_limit=limits.time_limit, began=limits.began)
        job = replace(job, asked=request, data=session.source.spec.without_memory())
        answer = execute(session, job, RunOptions.of(resources.checkpoint_every, output), folder, earlier)
    return answer, job, problem, limits, resources


def _warn_of_versions(run: Place, earlier: Checkpoint) -> None:
    here = versions()
    other = [f"{name} {was}, now {here.get(name)}" for name, was in earlier.versions.items() if here.get(name) != was]
    if other:
        log_warning("%s: begun with %s: the bits may differ", run, visible("; ".join(other)))


def _as_asked(run: Place, kept: DataSpec, given: DataSpec) -> DataSpec:
    """The data of a run, or what is given as it anew, and seen as it was; with another mask, if one is given."""
    anew = kept if given.where is None else find_columns(kept, given)
    if anew.where is None:
        raise UsageError(f"{run}: the data of this run was in memory; call dfeas.resume(run, X, labels)")
    mask = kept.mask if given.mask is None else given.mask
    return replace(kept, where=anew.where, labels=anew.labels, also=anew.also or kept.also, mask=mask, choice=anew.choice)

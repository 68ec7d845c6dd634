"""A certificate proved again, from data by path or in memory, which is seen as the certificate says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dfeas.answers.files import CERTIFICATE, require_followed
from dfeas.answers.words import EPS_INFEASIBLE
from dfeas.data.open import find_columns, open_source, resolve
from dfeas.data.source import DataSpec, Source, There, parse_view
from dfeas.engine.local import local_engine
from dfeas.errors import BadInputError, CheckFailedError, either
from dfeas.problem import Function
from dfeas.records import replace
from dfeas.settings import parse_bytes
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import check


def find_data(where: object, values: Mapping[str, Any], given: DataSpec, view: str, follow: bool) -> DataSpec:
    """The data of a result, by its keys, or what is ``given`` as it anew. Raises BadInputError where it is not known, and
    UsageError for a URL that is not to be followed.
    """
    if values["data"] is not None:
        if given.where is None:
            if not follow:
                require_followed(where, values, f"give the data, {either('X', '--data DATA')}")
            return DataSpec.from_json(values["data"])
        kept = DataSpec.from_json({**values["data"], "path": ".", "also": ()})
        mask, given = kept.mask if given.mask is None else given.mask, find_columns(kept, given)
        anew = replace(kept, where=given.where, labels=given.labels, also=given.also, mask=mask, choice=given.choice)
        return resolve(Source(anew)).spec
    if given.where is None:
        way = either("give it again, X and y", f"use dfeas verify DATA {where}/{CERTIFICATE}")
        raise BadInputError(f"{where}: the data was in memory; {way}")
    side = (values.get("sides") or {}).get("+1", {}).get("name") if given.beside is not None else None
    return as_seen(resolve(Source(replace(given, positive=side, intercept=bool(values["intercept"])))).spec, view)


def as_seen(given: DataSpec, view: str) -> DataSpec:
    """Data as a certificate sees it: its class against the rest, and its numbers of features."""
    about, seen = parse_view(view)
    return replace(
        given, positive=about or given.positive, one_vs_rest=given.beside is not None and about is not None, transform=seen
    )


def prove_again(
    where: object,
    spec: DataSpec,
    made: Certificate,
    kernel: Function | None,
    quick: bool,
    memory: str | int | None,
    there: There | None = None,
) -> Check:
    """What a certificate proves of data, in one read; see ``open_source``. Raises CheckFailedError where that is nothing."""
    budget = parse_bytes(memory)
    dataset = open_source(Source(spec, cones=not spec.also, there=there).within(budget))
    with local_engine(dataset, budget) as engine:
        proved = check(engine, dataset, made, kernel, quick=quick)
    if proved.verdict == EPS_INFEASIBLE and not proved.margin_upper < 1:
        raise CheckFailedError(f"{where}: it proves nothing: |Ax| of its weights is not below 1, as of any weights")
    return proved

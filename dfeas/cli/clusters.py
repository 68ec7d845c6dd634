"""Commands about runs that a cluster drives by itself, and about its configuration."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from dfeas.api import soft_margin, solve
from dfeas.cli import remote
from dfeas.cli.cluster import CLUSTER, Cluster
from dfeas.cli.command import JSON, LOCAL, Command, is_typed, option, put, say
from dfeas.cli.options import (
    ALSO,
    CHOSEN,
    FORCE,
    GO_ON,
    METHOD,
    OF_DATA,
    PLACE,
    arguments,
    asks,
    data_of,
    describe_all_methods,
    drop_options,
    make_arguments,
    options_of,
)
from dfeas.cli.outputs import RunStatus, runs_below
from dfeas.data.storage.places import absolute, is_url, place
from dfeas.errors import BadInputError, DfeasError, UsageError

HARD, SOFT = arguments(solve) - arguments(soft_margin), arguments(soft_margin) - arguments(solve)
"""Arguments of a solve that a soft margin has not, and the other way round."""


@click.command(
    cls=Command,
    notes=describe_all_methods,
    examples=(
        "dfeas submit /shared/mail.data --out /shared/run --scheduler tcp://head:8786",
        "dfeas submit /shared/mail.data --out /shared/svm --C 0.1,1 --scheduler tcp://head:8786",
    ),
)
@asks(PLACE, OF_DATA, CHOSEN, ALSO, GO_ON, METHOD, options_of(solve))
@asks(options_of(soft_margin, *SOFT, C="Fit a soft margin with this C; several values are fitted on shared reads."))
def submit(data: str, out: str, cluster: Cluster, as_json: bool, quiet: bool, **options: Any) -> None:
    """Let a worker of a cluster drive a run, and return at once.

    The run is a solve of DATA, or with --C an svm; its id is printed. DATA and RUN are paths that all workers see, or URLs.
    dfeas status ID and dfeas fetch ID work later, from anywhere. If the driving worker dies, another worker continues from the
    last checkpoint.
    """
    if not is_typed("C"):
        options = drop_options(options, SOFT, "{} is for svm, this is a solve: add --C")
    else:
        options = drop_options(options, HARD, "{} is for a solve, this is svm: leave it out with --C")
    submit_to = remote.prepare(data_of(data, options), out=out, **make_arguments(options))
    with cluster.join() as client:
        run = submit_to(client)
    say(json.dumps({"run": run, "out": absolute(out)}) if as_json else run)
    if not quiet:
        say("submitted; commands for its status, its result and its end:", err=True)
        for command in ("status", "fetch", "cancel"):
            say(f"  dfeas {command} {run}{cluster.words}", err=True)


@click.command(cls=Command, examples=("dfeas status RUN", "dfeas status --scheduler tcp://head:8786"))
@click.argument("run", required=False)
@asks(CLUSTER[:2], JSON)
def status(run: str | None, cluster: Cluster, as_json: bool) -> None:
    """List runs and their progress, here or on a cluster.

    RUN is a folder or a URL, or the id of a submitted run; of a folder that is no run, all runs below it are shown. Without
    RUN, the runs below this folder are shown, and those of the cluster that is set, if there is one; with --scheduler those
    of that cluster, whoever submitted or drives them.
    """
    there, folder = cluster.find_running(), place(run or ".")
    known: list[RunStatus] = []
    if there is None if run is None else folder.is_dir():
        known = runs_below(folder)
    elif run is not None and is_url(run):
        raise BadInputError(f"{run}: no such run")
    elif there is None:
        raise UsageError(f"{run}: no such run here; for the id of a submitted one say --scheduler or --scheduler-file")
    else:
        here = run is None and not (is_typed("scheduler") or is_typed("scheduler_file"))
        known = runs_below(folder, required=False) if here else []
        try:
            with cluster.join() as client:
                others = remote.status(run, client=client)
        except DfeasError as error:
            if not known:
                raise
            say(f"dfeas: {error}; these are the runs below this folder", err=True)
            others = []
        seen = {each.out for each in others}
        known = others + [each for each in known if absolute(each.run) not in seen]
    if not known:
        say("no run uses the cluster, or was submitted to it", err=True)
    if as_json:
        say(json.dumps([each.to_json() for each in known]))
    else:
        for each in known:
            put(each, as_json)


@click.command(
    cls=Command,
    examples=(
        "dfeas fetch c56c787c --scheduler tcp://head:8786",
        "dfeas fetch c56c787c --out monday --scheduler-file scheduler.json",
    ),
)
@click.argument("run")
@option("Output", "--out", type=LOCAL, metavar="DIR", help="Folder for the result.  [default: the name of RUN]")
@asks(CLUSTER[:2], FORCE, JSON)
def fetch(run: str, out: Path | None, cluster: Cluster, force: bool, as_json: bool) -> None:
    """Copy the result of a submitted run to this machine.

    RUN is an id, or a URL in an object store; result, certificate and trace are copied into a new folder.
    """
    with nullcontext() if is_url(run) else cluster.join() as client:
        folder = remote.fetch(run, out, force=force, client=client)
    say(json.dumps({"run": run, "out": str(folder)}) if as_json else folder)


@click.command(
    cls=Command,
    examples=("dfeas cancel 1a2b3c4d --scheduler tcp://head:8786", "dfeas cancel 1a2b3c4d --scheduler-file /shared/dask.json"),
)
@click.argument("run")
@asks(CLUSTER[:2], JSON)
def cancel(run: str, cluster: Cluster, as_json: bool) -> None:
    """End a submitted run, with a checkpoint.

    RUN is the id of a run. The run ends after its current read; dfeas resume continues it.
    """
    with cluster.join() as client:
        answer = remote.cancel(run, client=client)
    begun = f"{run}: ends after this read; dfeas resume {answer.out} goes on with it"
    say(json.dumps(answer.to_json()) if as_json else f"{run}: will not begin" if answer.task == remote.CANCELLED else begun)


@click.command(cls=Command, examples=("dfeas config --write", "dfeas config --write --force"))
@option("Output", "--write", "writes", is_flag=True, help="Install it where Dask reads it, on this machine.")
@option("Output", "--force", is_flag=True, help="Replace a file with other contents.")
@asks(JSON)
def config(writes: bool, force: bool, as_json: bool) -> None:
    """Print or install the Dask configuration for workers.

    Workers are slower without it. --write installs it where Dask reads its configuration: in the file or folder of DASK_CONFIG,
    otherwise in ~/.config/dask/dfeas.yaml. Do so on every machine of a cluster, before its scheduler and workers start.
    """
    if force and not writes:
        raise click.UsageError("--force is for --write")
    from dfeas.engine import clusters  # loads Dask, which other commands here may not need

    path = clusters.write_configuration(force=force) if writes else clusters.configuration_file()
    if as_json:
        say(json.dumps({"path": str(path), "written": writes, "configuration": clusters.load_configuration()}))
    else:
        for line in [str(path)] if writes else clusters.read_configuration().splitlines():
            say(line)

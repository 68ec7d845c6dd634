"""Flows of Dask users, beside the same points in memory; and how often their sources are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import dfeas
from tests.dask_users.flows import ARRAYS, CLIENTS, FEATURES, FRAMES, LABELS, VERBS, Flow, parquet, people, plain

EVERY_THIRD = [
    Flow(
        source,
        [*LABELS][turn % 4] if source in FRAMES else ("lazy", "numpy")[turn % 2],
        [*VERBS][turn % len(VERBS)],
        CLIENTS[turn // 2 % 4],
        separable=turn % 3 == 0,
    )
    for turn, source in enumerate([*FRAMES, *ARRAYS][::3])
]
"""Each verb, each way to name labels, and each client with every third source; the fuzzer draws all of them together."""
DRAWN = [
    Flow("xarray", "numpy", "LinearSVC", "false"),
    Flow("parquet-nullable", "array", "Separator", "client"),
    Flow("shuffled", "series", "check_separation", "none"),
    Flow("sampled", "frame", "suspects", "current", True, 7, 746),
]
"""That failed once when they were drawn."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Workers in this process, as notebooks have them."""
    with notebook_client(2) as client:
        yield client


def notebook_client(threads: int) -> Client:
    """A client whose workers are in this process."""
    return Client(
        processes=False,
        n_workers=1,
        threads_per_worker=threads,
        dashboard_address="127.0.0.1:0",
        set_as_default=False,
        silence_logs=60,
    )


@pytest.mark.filterwarnings("ignore:Dask currently has limited support for converting:UserWarning")
@pytest.mark.parametrize("flow", [*EVERY_THIRD, *DRAWN], ids=lambda flow: flow.name)
def test_a_flow_has_the_answer_of_the_points_in_memory(flow: Flow, client: Client, tmp_path: Path) -> None:
    assert flow.agree(plain(flow.asked(client, tmp_path)), plain(flow.expected(tmp_path)))


def counted(frame: pd.DataFrame, count: int, log: Path) -> Any:
    """Partitions that are made anew each time, which is written down."""
    some = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), count)]

    def load(place: int) -> pd.DataFrame:
        with log.open("a") as file:
            file.write("x")
        return some[place]

    return dd.from_map(load, range(count), meta=frame.iloc[:0])


@pytest.mark.parametrize(
    ("given", "where", "separable"),
    [("name", "none", True), ("series", "client", True), ("name", "client", False), ("series", "none", False)],
)
def test_each_partition_is_read_once_for_each_read_that_is_told(
    given: str, where: str, separable: bool, client: Client, tmp_path: Path
) -> None:
    lazy = counted(people(0, separable), 6, tmp_path / "log")
    found = dfeas.solve(*LABELS[given](lazy), client=client if where == "client" else None)
    reads = (tmp_path / "log").stat().st_size / 6
    assert found.verdict == ("feasible" if separable else "infeasible")
    if where == "client":
        assert reads == found.reads, "on a cluster nothing is kept"
    else:
        assert 2 <= reads <= found.reads, "this process may keep blocks"


@pytest.mark.parametrize("where", ["current", "false"])
def test_values_whose_rows_have_another_order_are_refused(where: str, client: Client, tmp_path: Path) -> None:
    frame = people(0, True)
    other = frame["label"].sample(frac=1, random_state=0)
    given = {"none": None, "current": None, "client": client, "false": False}[where]
    X, y = dd.from_pandas(frame, npartitions=4)[FEATURES], dd.from_pandas(other, npartitions=3, sort=False)
    with client.as_current() if where == "current" else pytest.MonkeyPatch.context():
        for ask in (
            lambda: dfeas.solve(X, y, client=given),
            lambda: dfeas.solve(X, other, client=given),
            lambda: dfeas.soft_margin(X, frame["label"].to_numpy(), weights=other.astype(float), client=given),
            lambda: dfeas.solve(X, frame["label"].to_numpy(), mask=other, client=given),
            lambda: dfeas.ingest(X, tmp_path / "data", y=y, client=given),
            lambda: dfeas.separation(X, y, client=given),
            lambda: dfeas.suspects(X, y, client=given),
            lambda: dfeas.feasible(X, y.astype(float), client=given),
        ):
            with pytest.raises(dfeas.BadInputError, match="have other rows, or the same in another order"):
                ask()


def test_labels_of_other_partitions_with_the_same_index_are_taken(client: Client) -> None:
    frame = people(0, True)
    X, y = dd.from_pandas(frame, npartitions=4)[FEATURES], dd.from_pandas(frame["label"], npartitions=3)
    assert dfeas.solve(X, y, client=client).verdict == "feasible"
    assert dfeas.solve(X, y).verdict == "feasible"


def test_what_a_closed_client_had_is_said_as_that(client: Client) -> None:
    with notebook_client(1) as other:
        lazy = other.persist(da.from_array(people(0, True)[FEATURES].to_numpy(), chunks=(40, 4)))
        with pytest.raises(dfeas.UsageError, match="persisted on the Dask cluster at"):
            dfeas.solve(lazy, people(0, True)["label"].to_numpy(), client=client)
    for given in (client, False):
        with pytest.raises(dfeas.UsageError, match="persisted by a Dask client that is closed"):
            dfeas.solve(lazy, people(0, True)["label"].to_numpy(), client=given)


@pytest.mark.parametrize("verb", [dfeas.solve, dfeas.check_separation, dfeas.suspects])
def test_a_frame_whose_partitions_dask_lost_is_refused_with_what_works(verb: Any, client: Client, tmp_path: Path) -> None:
    frame = people(0, True)
    with client.as_current():
        lazy, columns = (
            parquet(frame.assign(**{f"more{i}": 1.0 * i for i in range(20)}), tmp_path / "data", 4),
            [*FEATURES, "label"],
        )
        with pytest.raises(dfeas.BadInputError, match=r"Dask counts 4 partitions .*frame\.persist\(\)\[columns\]; or persist"):
            verb(lazy[columns].persist(), "label")
        for works in (lazy.persist()[columns], lazy[columns].repartition(npartitions=lazy.npartitions).persist()):
            verb(works, "label")


def test_a_file_that_is_gone_is_no_loss_of_the_cluster(client: Client, tmp_path: Path) -> None:
    lazy = parquet(people(0, True), tmp_path / "data", 3)
    (tmp_path / "data" / "part001.parquet").unlink()
    with pytest.raises(dfeas.CorruptDataError, match=r"X: Dask cannot compute a part of it: FileNotFoundError: .*part001"):
        dfeas.solve(lazy, "label", client=client)


def test_what_is_delayed_is_refused_with_the_call_that_works() -> None:
    import dask

    lazy = dask.delayed(people)(0, True)
    with pytest.raises(dfeas.BadInputError, match=r"X: Dask knows no shape of this Delayed; give .*X\.compute\(\)"):
        dfeas.solve(lazy, "label")


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, which Dask uses
def test_predictions_of_a_folder_of_parquet_are_lazy_and_written_as_parquet(client: Client, tmp_path: Path) -> None:
    lazy = parquet(people(0, True), tmp_path / "data", 6)
    found = dfeas.solve(lazy, "label", client=client)
    lazy.assign(predicted=found.predict(lazy)).to_parquet(tmp_path / "out")
    back = pd.read_parquet(tmp_path / "out")
    assert (back["predicted"] == back["label"]).all()

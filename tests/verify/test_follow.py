"""What a run names by URL is asked by nobody who did not say so: the run may come from a stranger."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.storage.object_path import ObjectPath

URLS = [f"{scheme}://somewhere/else" for scheme in ("s3", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "file", "odd")]
PLACES = {"path": lambda url: url, "labels": lambda url: url, "also": lambda url: [url]}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, X = tmp_path_factory.mktemp("follow"), np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, 0.0]])
    dfeas.ingest(X, path / "data", y=["a", "a", "b", "b"])
    dfeas.solve(path / "data", out=path / "run")
    dfeas.one_vs_rest(path / "data", out=path / "classes")
    dfeas.soft_margin(path / "data", out=path / "soft")
    return path


def naming(run: Path, to: Path, **changes: Any) -> Path:
    """A copy of a run, all of whose results name other places."""
    shutil.copytree(run, to)
    for file in to.rglob("result.json"):
        values = json.loads(file.read_text())
        for each in (values, *values.get("classes", {}).values()):
            each["data"] |= changes
        file.write_text(json.dumps(values))
    return to


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """URLs of which anybody made a place, which may already look for credentials."""
    urls = list[str]()

    def note(url: str) -> ObjectPath:
        urls.append(url)
        raise dfeas.BadInputError(f"{url}: it was asked")

    monkeypatch.setattr(ObjectPath, "of", note)
    return urls


@pytest.mark.parametrize("kind", ["run", "classes"])
@pytest.mark.parametrize("key", PLACES)
@pytest.mark.parametrize("url", URLS)
def test_a_url_that_only_the_run_names_is_not_asked(
    room: Path, tmp_path: Path, asked: list[str], kind: str, key: str, url: str
) -> None:
    run = naming(room / kind, tmp_path / "run", **{key: PLACES[key](url)})
    for call, other in ((dfeas.verify_run, "X"), (dfeas.report, "data=False")):
        given = (run, tmp_path / "page.html") if call is dfeas.report else (run,)
        with pytest.raises(dfeas.UsageError) as refused:
            call(*given)
        assert all(word in str(refused.value) for word in (url, "follow=True", other))
    for loaded in getattr(found := dfeas.load(run), "results", {"": found}).values():
        with pytest.raises(dfeas.UsageError, match="follow=True"):
            loaded.verify()
    for words, other in ((["verify", run], "--data DATA"), (["report", run, "--out", tmp_path / "page.html"], "--no-data")):
        done = CliRunner().invoke(commands, list(map(str, words)))
        assert done.exit_code == 2
        assert all(word in done.stderr for word in (url, "--follow", other))
        assert len(done.stderr.splitlines()) == 1
    assert asked == []
    assert not (tmp_path / "page.html").exists()


def test_it_is_asked_where_the_user_says_so_and_not_where_the_data_is_given(
    room: Path, tmp_path: Path, asked: list[str]
) -> None:
    run = naming(room / "run", tmp_path / "run", path=URLS[0])
    assert dfeas.verify_run(run, room / "data").verdict == "feasible"
    assert dfeas.report(run, data=False) == run / "report.html"
    done = CliRunner().invoke(commands, ["verify", str(run), "--data", str(room / "data")])
    assert (done.exit_code, asked) == (0, [])
    with pytest.raises(dfeas.BadInputError, match="it was asked"):
        dfeas.verify_run(run, follow=True)
    loaded = dfeas.load(run)
    assert isinstance(loaded, dfeas.Result)
    assert loaded.verify(room / "data").verdict == "feasible"
    assert asked == [URLS[0]]
    with pytest.raises(dfeas.BadInputError, match="it was asked"):
        loaded.verify(follow=True)
    dfeas.report(run, follow=True)  # which says on the page that it could not be read
    assert "it was asked" in (run / "report.html").read_text()
    refused = CliRunner().invoke(commands, ["verify", str(room / "data"), str(run / "certificate.npz"), "--follow"])
    assert refused.exit_code == 2


def test_so_does_the_report_of_a_soft_margin(room: Path, tmp_path: Path, asked: list[str]) -> None:
    run = naming(room / "soft", tmp_path / "run", path=URLS[0])
    with pytest.raises(dfeas.UsageError, match="follow=True"):
        dfeas.report(run)
    assert asked == []

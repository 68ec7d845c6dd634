"""Reports of real runs, parsed: what they say, how many pictures they hold, and that they load nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.answers.words import Stop
from dfeas.data.generate.points import Instance
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.reports.compare import compare, load_run
from dfeas.reports.margins import look
from dfeas.reports.page import report
from dfeas.verify.certificate import Certificate
from tests.reports.making import Page, cli, page_of, parse

COURSE = ["Margin bracket"]


def change_passes(run: Path, **changes: Any) -> None:
    """Write the trace again with keys of each pass changed."""
    events = [json.loads(line) for line in (run / "trace.jsonl").read_text().splitlines()]
    lines = [json.dumps({**event, **changes} if event["event"] == "pass" else event) for event in events]
    (run / "trace.jsonl").write_text("\n".join(lines) + "\n")


def test_a_separator_is_explained(room: Path, page: Callable[[str], Page]) -> None:
    seen, values = page("separator"), json.loads((room / "separator" / "result.json").read_text())
    assert seen.texts["title"] == ["dfeas: separator: feasible"]
    assert seen.texts["h2"] == ["Feasible: a hyperplane separates the points"]
    assert f"Why it stopped: {Stop.VERDICT.sentence}." in seen.texts["p"]
    assert "Proof: rigorous: rounding errors are bounded." in seen.texts["p"]
    assert sorted(seen.pictures) == sorted([*COURSE, "Margin distribution"])
    assert seen.facts["points"] == "3,000"
    assert seen.facts["margin"] == f"{values['margin_lower']:.6g} .. {values['margin_upper']:.6g}"
    assert seen.facts["fingerprint"] == values["fingerprint"]
    assert seen.facts["cost"].startswith(f"{values['passes']:.4g} passes of {values['method']}, ")
    events = [json.loads(line) for line in (room / "separator" / "trace.jsonl").read_text().splitlines()]
    notes = [text for event in events if event["event"] != "pass" for text in (event["event"], event["text"])]
    assert seen.texts["td"][-len(notes) :] == notes


def test_conflicts_are_listed_the_first_fifty_at_most(copy: Callable[..., Path]) -> None:
    scores = [-1.0, *(-0.1 / i for i in range(1, 60))]
    entries = [{"point": 7 * i, "label": "<b>&", "weight": 0.01, "score": score} for i, score in enumerate(scores)]
    page = parse(report([copy("conflict", conflicts=entries)]))
    assert page.texts["h2"] == ["Infeasible: no hyperplane separates the points; suspect: point 0 (labelled <b>&)"]
    assert "Proof: exact: nothing is left to rounding." in page.texts["p"]
    assert {"Scores, sorted", *COURSE} <= set(page.pictures)
    assert "Margin distribution" not in page.pictures
    rows = [page.texts["td"][i : i + 4] for i in range(0, 4 * 50, 4)]
    assert rows == [[str(7 * i), "<b>&", "0.01", f"{scores[i]:+.6f}"] for i in range(50)]
    assert "The first 50 of 60 points" in page.words


def test_the_points_of_a_real_conflict_are_those_of_the_result(room: Path, page: Callable[[str], Page]) -> None:
    seen, conflicts = page("conflict"), json.loads((room / "conflict" / "result.json").read_text())["conflicts"]
    histogram = seen.drawn[seen.pictures.index("Scores of all points")]
    assert f"point {conflicts[0]['point']}" in histogram
    assert all(label in histogram for label in ("label +1", "label -1"))
    assert seen.texts["td"][0] == str(conflicts[0]["point"]) == str(Instance("one-flip", 8, 3000, 0.05).wrong_point)
    assert seen.texts["td"][: 4 * len(conflicts) : 4] == [str(each["point"]) for each in conflicts]


def test_a_run_that_met_a_limit_says_so_and_shows_its_direction(page: Callable[[str], Page]) -> None:
    seen = page("limit")
    assert seen.texts["h2"] == ["Undecided: neither a separator nor a proof that there is none"]
    assert "Why it stopped: the limit of passes was reached." in seen.texts["p"]
    assert "Distances of the points from the best direction so far" in seen.texts["h3"]
    assert sorted(seen.pictures) == sorted([*COURSE, "Margin distribution"])


def test_distances_are_those_of_the_separator(room: Path) -> None:
    run = load_run("separator", room / "separator")
    found = look([run], "100MB")["separator"].margins
    assert found is not None
    header = json.loads((room / "yes" / "zarr.json").read_text())["attributes"]["dfeas"]
    assert found.counts.sum(axis=1).tolist() == [3000 - header["positive"], header["positive"]]
    used = np.flatnonzero(found.counts.any(axis=0))
    assert found.edges[used[0]] <= run.values["margin_lower"] * (1 + 1e-9)
    assert found.edges[used[0] + 1] >= run.values["margin_lower"]


def test_a_zero_point_is_a_page_without_a_pass(tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 4, 50, margin=0.1)
    X[17] = 0
    dfeas.solve(X, labels, intercept=False, out=tmp_path / "run")
    page = parse(report([tmp_path / "run"]))
    assert page.texts["h2"] == ["Infeasible: no hyperplane through the origin separates the points"]
    assert "Proof: exact: nothing is left to rounding." in page.texts["p"]
    assert page.pictures == ["Weights, sorted"]
    assert "No pass was made" in page.words


@pytest.mark.parametrize(
    ("margins_of_passes", "proof"),
    [
        ({"margin_lower": 1e-300, "margin_upper": 0.5}, "rigorous"),
        ({"margin_lower": float("nan"), "margin_upper": float("inf")}, "none"),
        ({"seconds": 0.0, "pass_seconds": 0.0, "read_seconds": 0.0, "scan_seconds": 0.0, "violated": 0}, "rigorous"),
    ],
)
def test_extreme_numbers_are_drawn(copy: Callable[..., Path], margins_of_passes: dict[str, Any], proof: str) -> None:
    ends = {key: value for key, value in margins_of_passes.items() if key.startswith("margin")}
    run = copy("separator", proof=proof, stopped="interrupted", verdict="undecided", **ends)
    change_passes(run, **margins_of_passes)
    page = page_of(run, data=False)
    assert page.pictures == COURSE
    assert "Why it stopped: the run was interrupted." in page.texts["p"]


def test_a_single_pass_and_no_pass_are_drawn(copy: Callable[..., Path]) -> None:
    run = copy("limit")
    passes = [line for line in (run / "trace.jsonl").read_text().splitlines() if '"pass"' in line]
    (run / "trace.jsonl").write_text(passes[0] + "\n")
    page = page_of(run, data=False)
    assert page.pictures == COURSE
    assert "The trace has no notes." in page.words
    (run / "trace.jsonl").write_text("")
    assert page_of(run, data=False).pictures == []


def test_a_race_stands_for_its_runs_in_order_and_its_page_is_beside_them(room: Path) -> None:
    page_path = report([room / "race"])
    assert page_path == room / "race" / "report.html"
    page = parse(page_path)
    assert page.texts["a"] == ["mirror-prox", "perceptron", "working-set"]
    assert [a["href"] for tag, a in page.tags if tag == "a"] == ["#run-1", "#run-2", "#run-3"]
    assert [a["id"] for tag, a in page.tags if tag == "section" and "id" in a] == ["run-1", "run-2", "run-3"]
    assert page.texts["h2"] == ["Comparison", *["Feasible: a hyperplane separates the points"] * 3]
    assert page.pictures[0] == "Margin brackets of all runs"
    assert page.pictures.count("Margin distribution") == 3
    assert "Beware" not in page.words


def test_runs_on_different_data_are_compared_with_a_warning(room: Path, tmp_path: Path) -> None:
    page = page_of(room / "separator", room / "limit", out=tmp_path / "both.html", data=False)
    assert "Beware: these runs are on 2 different sets of points and labels" in page.words
    with pytest.raises(UsageError, match="with out='FILE'"):
        report([room / "separator", room / "conflict"])


def test_one_folder_is_as_good_as_a_list_of_them(copy: Callable[..., Path], room: Path) -> None:
    run, other = copy("separator"), room / "conflict"
    assert report(str(run), data=False) == report(run, data=False) == run / "report.html"
    rows = compare([run, other])
    assert compare(run, str(other)) == compare((run,), other) == rows
    for call in (lambda: report(5), lambda: compare(5), lambda: report([run, None])):  # type: ignore[arg-type, list-item]
        with pytest.raises(UsageError, match="runs: expected a path or several, got "):
            call()


def test_a_folder_of_runs_stands_for_the_classes_of_those_that_have_some(room: Path, tmp_path: Path) -> None:
    shutil.copytree(room / "separator", tmp_path / "separator")
    dfeas.one_vs_rest(np.eye(3), ["a", "b", "c"], out=tmp_path / "classes")
    assert [r["run"] for r in compare(tmp_path)] == ["class-a", "class-b", "class-c", "separator"]


def test_rows_are_the_values_of_the_results(room: Path, tmp_path: Path) -> None:
    rows = compare([room / "conflict", room / "race"])
    assert [r["run"] for r in rows] == ["conflict", "mirror-prox", "perceptron", "working-set"]
    for one in rows:
        values = json.loads((Path(one["folder"]) / "result.json").read_text())
        assert all(values[key] == value for key, value in one.items() if key not in {"run", "folder"})
    shutil.copytree(room / "separator", tmp_path / "separator")
    twice = compare([room / "separator", tmp_path / "separator"])
    assert [r["run"] for r in twice] == [str(room / "separator"), str(tmp_path / "separator")]


def test_data_that_has_gone_or_changed_is_said(copy: Callable[..., Path], room: Path, tmp_path: Path) -> None:
    data = json.loads((room / "separator" / "result.json").read_text())["data"]
    for place, words in ((tmp_path / "gone", "no such file or folder"), (room / "no", "no longer the data of the run")):
        run = copy("separator", data={**data, "path": str(place)})
        page = parse(report([run]))
        assert "Margin distribution" not in page.pictures
        assert words in page.words
        shutil.rmtree(run)
    damaged = Path(shutil.copytree(room / "yes", tmp_path / "damaged"))
    chunk = next((damaged / "X").glob("c.*"))
    chunk.write_bytes(bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    assert "is damaged" in parse(report([copy("separator", data={**data, "path": str(damaged)})])).words


def test_a_foreign_array_is_known_again_by_its_entries(tmp_path: Path, arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 6, 2000, margin=0.1)
    zarr.create_array(tmp_path / "x", data=X, chunks=(500, 6))
    np.save(tmp_path / "y.npy", np.where(labels > 0, "h<a>m 良", "_$p_a^m$"))
    dfeas.solve(tmp_path / "x", tmp_path / "y.npy", out=tmp_path / "run", intercept=True)
    assert "Margin distribution" in parse(report([tmp_path / "run"])).pictures
    zarr.open_array(tmp_path / "x", mode="r+")[1999, 5] = 0.25
    page = parse(report([tmp_path / "run"]))
    assert "Margin distribution" not in page.pictures
    assert "no longer the data of the run" in page.words


def test_a_certificate_without_a_direction_is_said(copy: Callable[..., Path]) -> None:
    run = copy("limit")
    with np.load(run / "certificate.npz") as arrays:
        fields = {name: arrays[name] for name in arrays}
    np.savez(run / "certificate.npz", **{**fields, "y": 0 * fields["y"]})
    assert "the run left no direction" in page_of(run).words
    (run / "certificate.npz").unlink()
    assert "The run left no certificate." in page_of(run, data=False).words


@pytest.mark.parametrize("kind", ["separator", "conflict"])
def test_a_verdict_whose_certificate_is_gone_is_not_shown_as_proved(
    copy: Callable[..., Path], page: Callable[[str], Page], kind: str
) -> None:
    assert "not proved" not in page(kind).words.casefold()
    run = copy(kind)
    (run / "certificate.npz").unlink()
    said = f"{run / 'certificate.npz'} is missing: nothing proves the verdict that result.json says"
    done = cli("report", run, "--no-data")
    assert (done.exit_code, done.stderr.splitlines()) == (0, [f"dfeas: warning: {said}"])
    words = parse(run / "report.html").words
    for text in (f"Beware: {said}.", "Not proved: ", "none: no verdict was proved"):
        assert text in words
    assert not any(text in words for text in ("rigorous: rounding", "exact: "))
    done = cli("compare", run, "--json")
    assert (json.loads(done.stdout)[0]["proof"], done.stderr.splitlines()) == ("none", [f"dfeas: warning: {said}"])


def test_so_it_is_said_of_soft_margins_and_classes(room: Path, tmp_path: Path) -> None:
    dfeas.soft_margin(room / "yes", out=tmp_path / "soft", tol=0.5)
    dfeas.one_vs_rest(room / "yes", out=tmp_path / "classes")
    for file in tmp_path.rglob("certificate.npz"):
        file.unlink()
    assert "certificate.npz is missing: the hyperplane was there" in page_of(tmp_path / "soft", data=False).words
    words = page_of(tmp_path / "classes", out=tmp_path / "page.html", data=False).words
    assert words.count("is missing: nothing proves") == len([*(tmp_path / "classes").glob("class-*")])


def test_a_torn_last_line_is_no_harm_and_any_other_is(copy: Callable[..., Path]) -> None:
    run = copy("separator")
    trace = (run / "trace.jsonl").read_bytes()
    (run / "trace.jsonl").write_bytes(trace + b'{"event": "pass", "met')
    whole = load_run("a", run)
    assert len(whole.records) == trace.count(b'"event": "pass"')
    for bad in (b"{\n" + trace, trace.replace(b'"passes"', b'"p"'), b"[]\n" + trace, b'{"event": 1}\n', b"\xff\n"):
        (run / "trace.jsonl").write_bytes(bad)
        with pytest.raises(CorruptDataError, match=r"trace\.jsonl: line \d+ is damaged"):
            report([run])
    (run / "trace.jsonl").unlink()
    with pytest.raises(CorruptDataError, match=r"trace\.jsonl: missing"):
        report([run])
    assert not (run / "report.html").exists()


PLACE = {"path": "data", "labels": None, "positive": None, "intercept": False}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passes": "many"}, "another type"),
        ({"m": float("inf")}, "not a readable result"),
        ({"n": None}, "not a readable result"),
        ({"data": {**PLACE, "path": None}}, "not a readable result"),
        ({"data": {**PLACE, "intercept": "no"}}, "not a readable result"),
        ({"fingerprint": "0" * 64}, "of different data"),
    ],
)
def test_a_damaged_result_is_one_line(changes: dict[str, Any], said: str, copy: Callable[..., Path]) -> None:
    with pytest.raises(CorruptDataError, match=said):
        report([copy("separator", **changes)])


def test_missing_runs_and_damaged_certificates_are_one_line(copy: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = copy("separator")
    weightless = Certificate("gordan", json.loads((run / "result.json").read_text())["fingerprint"])
    for ask, refused, said in (
        (lambda: report([tmp_path / "none"]), BadInputError, "no such folder"),
        (lambda: compare([tmp_path / "empty"]), BadInputError, "no finished run"),
        (lambda: compare([]), UsageError, "no run"),
        (lambda: weightless.save(run / "certificate.npz") or report([run]), CorruptDataError, "no point has a weight"),
        (lambda: os.truncate(run / "certificate.npz", 9) or report([run]), CorruptDataError, "not a readable certificate"),
    ):
        with pytest.raises(refused, match=said):
            ask()


def test_only_a_page_of_ours_is_replaced(copy: Callable[..., Path], tmp_path: Path) -> None:
    run, foreign = copy("separator"), tmp_path / "thesis.html"
    first = report([run], data=False).read_bytes()
    assert report([run], data=False).read_bytes() == first  # the same run, the same bytes
    foreign.write_text("<html>years of work, dfeas report</html>")
    for out, said in ((foreign, "is no report of dfeas"), (tmp_path, "a folder"), (tmp_path / "a/b.html", "no such folder")):
        with pytest.raises(UsageError, match=said):
            report([run], out)
    assert foreign.read_text().startswith("<html>years")
    files = {"certificate.npz", "nearest.state", "report.html", "result.json", "trace.jsonl"}
    assert {path.name for path in run.iterdir()} == files


def test_without_matplotlib_the_error_says_what_to_install(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r'pip install "matplotlib>=3\.8\.4" "jinja2>=3\.1\.6"'):
        report([room / "separator"])
    assert len(compare([room / "race"])) == 3


def test_report_on_the_command_line_prints_the_path_or_json(room: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cli("report", room / "separator", "--out", page, "--memory", "200MB", "--no-data")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{page}\n", "")
    assert "made without reading the data" in parse(page).words
    assert parse(page).pictures == COURSE
    refused = cli("report", room / "separator", room / "conflict")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("dfeas: error: several runs")
    assert cli("report", tmp_path / "nowhere").exit_code == 4
    done = cli("report", room / "separator", "--out", page, "--no-data", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"page": str(page), "runs": [str(room / "separator")]})


def test_report_opens_its_page_in_the_browser_of_the_user(room: Path, tmp_path: Path) -> None:
    browser, page = tmp_path / "browser", tmp_path / "a page.html"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "dfeas", "report", str(room / "separator"), "--out", str(page), "--no-data", "--open"]
    for name, said in ((f"{browser} %s", ""), (str(tmp_path / "none"), "no browser was found")):
        found = {**os.environ, "BROWSER": name, "PATH": str(tmp_path)}
        for graphical in ("DISPLAY", "WAYLAND_DISPLAY"):
            found.pop(graphical, None)
        done = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"{page}\n")
        assert said in done.stderr
    assert (tmp_path / "opened").read_text() == page.resolve().as_uri()


def test_compare_on_the_command_line_is_a_table_or_json(room: Path) -> None:
    done = cli("compare", room / "race")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["run", "verdict", "stopped", "proof"]  # a race calls its runs by their methods
    assert [line.split()[0] for line in lines[1:]] == ["mirror-prox", "perceptron", "working-set"]
    assert len({len(line) for line in lines}) == 1
    assert cli("compare", room / "separator").stdout.split()[:3] == ["run", "method", "verdict"]
    done = cli("compare", room / "race", room / "conflict", "--json")
    assert [r["run"] for r in json.loads(done.stdout)] == ["mirror-prox", "perceptron", "working-set", "conflict"]
    assert done.stderr.count("\n") == 1
    assert "fingerprints differ" in done.stderr

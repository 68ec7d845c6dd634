"""Names that are no UTF-8 or turn text round, and files that were cut: what a page shows and says of them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

import dfeas
from dfeas.errors import CorruptDataError
from dfeas.reports.compare import compare
from dfeas.reports.margins import Seen
from dfeas.reports.page import render_page, report
from tests.reports.making import cli, parse

HOSTILE = "a\u202eb\u200bc\ud800<i>"
"""Turns text round, is not seen, and is no UTF-8."""


def test_no_name_turns_a_page_round_or_breaks_it(copy: Callable[..., Path], tmp_path: Path) -> None:
    sides = {"-1": {"name": HOSTILE, "points": 1}, "+1": {"name": f"{HOSTILE}2", "points": 2999}}
    for original in ("separator", "conflict"):
        run = copy(original, sides=sides, why=HOSTILE, message=HOSTILE)
        moved = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r_\xff\xe2\x80\xae" + original.encode()))
        run.rename(moved)
        text = report([moved]).read_text("utf-8")  # of which all is UTF-8
        assert not {"\u202e", "\u200b"} & set(text)
        assert "a\\u202eb\\u200bc\\ud800&lt;i&gt;" in text
        assert "r_\\udcff" in text
    dfeas.compare([moved])


def test_whatever_a_page_quotes_is_escaped() -> None:
    text = f'{HOSTILE}"'
    values = {"method": text, "stopped": text, "gap": 1.0, "n": 1, "m": 1, "intercept": False, "fingerprint": text}
    run = SimpleNamespace(
        **{"name": text, "headline": text, "missing": text, "lost": text, "folder": text, "kernel": {}, "answer": {text: text}},
        **{"values": {**values, "versions": {text: text}, "data": None}, "certificate": None, "place": {}, "seen": Seen()},
        **{"course": Figure(), "path": Figure(), "begun": {}, "peak": 0, "commands": {text: text}},
        notes=[{"event": text, "text": text}],
        system=None,
    )
    made = render_page(title=text, soft=True, grid=None, runs=[run])
    assert "<i>" not in made
    assert made.count("a\\u202eb\\u200bc\\ud800&lt;i&gt;&#34;") == 18


def test_a_report_is_written_where_nothing_but_ascii_is_known(copy: Callable[..., Path]) -> None:
    run = copy("separator")
    run = run.rename(run.with_name("r_\u00fc"))
    more = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [sys.executable, "-m", "dfeas", "report", os.fsencode(run)]
    ended = subprocess.run(words, env=os.environ | more, capture_output=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert (run / "report.html").read_text("utf-8").count("</html>") == 1


@pytest.mark.parametrize("cut", ["nothing", "half", "last"])
def test_a_cut_trace_is_said(cut: str, copy: Callable[..., Path]) -> None:
    run = copy("separator")
    assert "Beware" not in parse(report([run], data=False)).words
    whole = (run / "trace.jsonl").read_bytes()
    assert b"\n" not in whole[len(whole) // 2 - 1 : len(whole) // 2 + 1]
    left = {"nothing": 0, "half": len(whole) // 2, "last": whole.rstrip(b"\n").rindex(b"\n") + 1}[cut]
    (run / "trace.jsonl").write_bytes(whole[:left])
    page = parse(report([run], data=False))
    assert "trace.jsonl: incomplete" in page.words
    assert "No pass was made" not in page.words
    ended = cli("verify", run)
    assert ended.exit_code == 0
    assert [line for line in ended.stderr.splitlines() if "incomplete" in line] == ended.stderr.splitlines()
    assert ended.stderr.count("trace.jsonl: incomplete") == 1


def test_a_cut_certificate_is_not_compared(copy: Callable[..., Path]) -> None:
    run = copy("separator")
    whole = (run / "certificate.npz").read_bytes()
    for left in (0, len(whole) // 2):
        (run / "certificate.npz").write_bytes(whole[:left])
        with pytest.raises(CorruptDataError, match=r"certificate\.npz: not a readable certificate"):
            compare([run])

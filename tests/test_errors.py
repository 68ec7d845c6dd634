"""Errors are caught by who knows Python only, and mean what they say wherever a wider error is caught."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.cli.remote import status
from dfeas.errors import visible
from tests.typed import dfeas as typed


def test_errors_are_those_of_python_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no labels"):
        dfeas.solve(np.eye(3))
    with pytest.raises(ValueError, match="not finite"):
        dfeas.solve([[np.nan, 1.0], [1.0, 1.0]], [0, 1])
    dfeas.ingest(np.eye(4), tmp_path / "data", y=[0, 1, 0, 1])
    chunk = next((tmp_path / "data" / "X").glob("c.*"))
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(OSError, match="bytes, expected"):
        dfeas.solve(tmp_path / "data")


@pytest.mark.parametrize("kind", [dfeas.UsageError, dfeas.BadInputError, dfeas.CorruptDataError])
def test_errors_travel(kind: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(kind("one line\x1b that says what to do")))
    assert type(again) is kind
    assert str(again) == "one line\\x1b that says what to do"


def test_commands_in_errors_can_be_typed_and_called(tmp_path: Path) -> None:
    (tmp_path / "two words.csv").write_text("1,x,3\n2,1,2\n")
    with pytest.raises(dfeas.UsageError) as caught:
        dfeas.solve(tmp_path / "two words.csv", "0")
    assert str(caught.value).endswith("two words.csv', 'two words.data')")
    assert caught.value.as_typed.endswith("two words.csv' 'two words.data'")
    with pytest.raises(dfeas.BadInputError, match=r"see dfeas ingest --help for other formats"):
        dfeas.solve(tmp_path)


URLS = "tcp://user:SECRET@host:1 user:SECRET@host:1 https://SECRET@host/x tls://a:SEC/RET@h:1 s3://b/k?signature=SECRET"


@pytest.mark.parametrize("url", URLS.split())
def test_what_a_url_keeps_secret_is_not_repeated(url: str, tmp_path: Path) -> None:
    X, labels = [[1.0], [2.0]], [1, -1]
    asked: list[Callable[[], object]] = [
        lambda: dfeas.solve(X, labels, client=url, intercept=True),
        lambda: status("abcd", client=url),
        lambda: dfeas.solve(X, labels, mask=url, intercept=True),
        lambda: dfeas.solve(url, intercept=True),
        lambda: dfeas.solve(X, labels, intercept=True, out=url),
    ]
    asked = asked[: 2 if "://" not in url else None]  # elsewhere it is the name of a file
    for ask in asked:
        with pytest.raises(dfeas.DfeasError) as caught:
            ask()
        assert not {"SECRET", "SEC/RET"} & set(re.findall("SEC/?RET", f"{caught.value} {caught.value.as_typed}"))
    ended = typed("solve", "data", "--scheduler", url, "--out", "run", "--json", cwd=tmp_path)
    assert ended.returncode == 2
    assert not re.search("SEC/?RET", ended.stdout + ended.stderr)
    assert json.loads(ended.stderr)["exit_code"] == 2
    assert not list(tmp_path.iterdir())


def test_other_urls_are_shown_as_they_are() -> None:
    for text in ("s3://bucket/key@v2, see tcp://host:8786/a@b", "https://example.org/a?b", "tcp://[::1]:8786 and a@b"):
        shown = visible(text)
        assert shown == visible(shown)
        assert shown == text.replace("?b", "?***")

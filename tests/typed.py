"""A command line, as it is typed: in this process, which has imported everything, or in one of its own."""

import io
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dfeas.cli.main import main
from dfeas.errors import DfeasError

DFEAS = [sys.executable, "-m", "dfeas"]


def dfeas(*words: Any, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In this process."""
    typed = ["dfeas", *map(str, words)]
    out, err, code = io.StringIO(), io.StringIO(), None
    with chdir(cwd or Path.cwd()), redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", typed):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return subprocess.CompletedProcess(typed, 0 if code is None else int(code), out.getvalue(), err.getvalue())


def apart(*words: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    return subprocess.run([*DFEAS, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


def says(words: str) -> Callable[[DfeasError], bool]:
    """Whether an error has some words, a regular expression, as the command line or Python says it."""
    return lambda error: any(re.search(words, text) for text in (error.as_typed, str(error)))

"""Code in README and the documentation: run in the order of its page, and compared with the output that is printed there.

    python tests/documentation.py README.md docs/howto/*.md           # run pages
    python tests/documentation.py --write docs/howto/tables.md        # and write the outputs that differ
    python tests/documentation.py --types                             # only what mypy says of the Python on all pages

A page is run in an empty folder, all of its Python in one namespace. In a ``console`` block a line that begins with ``$`` is a
command, and what follows it its output, without progress; a ``text`` block right below a ``python`` block is what that prints.
Words are compared as they are, numbers to 5 %, times and speeds not at all, nor sizes and threads where ``plan`` says what a
machine allows, and ``...`` stands for any text. A block below
``<!-- not run: why -->`` is not run.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dfeas.cli.main import commands

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
TIMES = r"s|ms|min|h|[kMG]?i?B/s|points/s"
OF_A_MACHINE = rf"{TIMES}|[kMGT]?i?B|threads"
CLOSE = 0.05
LIMIT = 3
"""The exit code of a run that a limit ended, whose output is no error."""


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    lines: list[str]
    at: int  # line of the page, from 0, of the first line inside
    skipped: bool = False  # said not to be run


@dataclass
class Difference:
    """What a page prints, and what came."""

    at: int
    lines: int  # of the page, that the output takes
    expected: str
    came: str


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, also indented ones."""
    found: list[Block] = []
    lines, fence, before = text.splitlines(), "", ""
    for number, line in enumerate(lines):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(\S*)", line)
        if fence:
            if mark and mark[1] == fence and not mark[2]:
                fence = ""
            else:
                found[-1].lines.append(line)
        elif mark:
            fence = mark[1]
            found.append(Block(mark[2], [], number + 1, before.startswith("<!-- not run:")))
        if line.strip():
            before = line.strip()
    return found


@dataclass
class Page:
    """What runs the blocks of a page."""

    path: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    code: int = 0  # of the last command

    def differences(self) -> Iterator[Difference]:
        """Outputs that are not those of the page. The current folder is the one it is run in."""
        text = self.path.read_text()
        found = blocks(text)
        lines = text.splitlines()
        for block, following in zip(found, [*found, None][1:], strict=True):
            if block.skipped:
                continue
            if block.language == "python":
                came = self._python(block)
                below = following is not None and following.language == "text" and not following.skipped
                between = lines[block.at + len(block.lines) + 1 : following.at - 1] if below and following else ["x"]
                if below and following and not any(line.strip() for line in between):
                    yield from _compared(following.at, following.lines, came)
            elif block.language == "console":
                yield from self._console(block)

    def _python(self, block: Block) -> str:
        code = "\n" * block.at + "\n".join(block.lines)
        with redirect_stdout(StringIO()) as said:
            exec(compile(code, str(self.path), "exec"), self.namespace)
        return said.getvalue()

    def _console(self, block: Block) -> Iterator[Difference]:
        starts = [k for k, line in enumerate(block.lines) if line.startswith("$ ")]
        assert starts, f"{self.path}, line {block.at}: a console block without a command"
        assert starts[0] == 0, f"{self.path}, line {block.at}: it begins with no command"
        for k, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
            last = k
            while block.lines[last].endswith("\\"):
                last += 1
            command = "\n".join(block.lines[k : last + 1]).removeprefix("$ ").replace("\\\n", " ")
            units = OF_A_MACHINE if command.startswith("dfeas plan ") else TIMES
            yield from _compared(block.at + last + 1, block.lines[last + 1 : end], self._command(command), units)

    def _command(self, command: str) -> str:
        if command == "echo $?":
            return str(self.code)
        words = shlex.split(command, comments=True)
        if words[0] == "dfeas" and not {"|", ">", "<", "&&", ";"} & set(words):
            done = CliRunner().invoke(commands, words[1:], prog_name="dfeas", terminal_width=80)
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            self.code, said, error = done.exit_code, done.stdout, done.stderr
        else:
            ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
            self.code, said, error = ran.returncode, ran.stdout, ran.stderr
        return said if self.code in (0, LIMIT) else said + "".join(error.splitlines(keepends=True)[-1:])


def _compared(at: int, expected: list[str], came: str, units: str = TIMES) -> Iterator[Difference]:
    text = "\n".join(expected)
    if not same(text, came, units):
        yield Difference(at, len(expected), text, came.rstrip("\n"))


def same(expected: str, came: str, units: str = TIMES) -> bool:
    """Whether an output is the one that is printed: words, and numbers nearly, but those of some units."""
    pattern, numbers = "", []
    if "seconds" in expected.partition("\n")[0]:  # the last column of a table
        expected = re.sub(rf"{NUMBER}$", r"\g<0> s", expected, flags=re.MULTILINE)
        came = re.sub(rf"{NUMBER}$", r"\g<0> s", came, flags=re.MULTILINE)
    for token in re.findall(rf"\.\.\.|{NUMBER}(?:\s*(?:{units})\b)?|\s+|.", expected.strip()):
        if token == "...":
            pattern += r"[\s\S]*?"
        elif re.fullmatch(rf"{NUMBER}\s*(?:{units})", token):
            pattern += rf"{NUMBER}\s*(?:{units})"
        elif re.fullmatch(NUMBER, token):
            pattern += f"({NUMBER})"
            numbers.append(token)
        else:
            pattern += r"\s+" if token.isspace() else re.escape(token)
    match = re.fullmatch(pattern, came.strip())
    return match is not None and all(
        math.isclose(float(a), float(b), rel_tol=CLOSE, abs_tol=1e-9) for a, b in zip(numbers, match.groups(), strict=True)
    )


def run(path: Path) -> list[Difference]:
    """Run a page in an empty folder."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return list(Page(path).differences())


def write(path: Path, differences: list[Difference]) -> None:
    """Put what came in the place of what was printed."""
    lines = path.read_text().splitlines()
    for each in reversed(differences):
        lines[each.at : each.at + each.lines] = each.came.splitlines()
    path.write_text("\n".join(lines) + "\n")


STRICT = ("--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--disable-error-code", "import-untyped")
"""Of readers' code, whose functions have no types, and of libraries without any."""
NARROW = ("--disable-error-code", "union-attr")
"""What is in a folder, of which ``load`` and ``resume`` tell, is known to who wrote it."""
UNTYPED = ("docs/development", "docs/howto/check_certificate.md")
"""Pages on code of ours that is not there, and on what zarr returns, which may be many things."""


def wrong_types(paths: list[Path]) -> list[str]:
    """What mypy finds in the Python of pages, each as one module, with the lines of the page."""
    with tempfile.TemporaryDirectory() as folder:
        names: dict[str, Path] = {}
        for path in paths:
            some = [block for block in blocks(path.read_text()) if block.language == "python" and not block.skipped]
            if not some or str(path.relative_to(PROJECT)).startswith(UNTYPED):
                continue
            lines: list[str] = []
            for block in some:
                lines += [""] * (block.at - len(lines)) + textwrap.dedent("\n".join(block.lines)).splitlines()
            names[f"page{len(names)}"] = path
            (Path(folder) / f"{list(names)[-1]}.py").write_text("\n".join(lines) + "\n")
        command = [sys.executable, "-m", "mypy", *STRICT, *NARROW, *(str(Path(folder) / f"{name}.py") for name in names)]
        said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False).stdout.splitlines()
    found = [re.match(r".*/(page\d+)\.py(:\d+: error: .*)", line) for line in said]
    return [f"{names[each[1]].relative_to(PROJECT)}{each[2]}" for each in found if each is not None]


def main() -> int:
    """Run pages, and say or write what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--write", action="store_true", help="write the outputs that differ")
    parser.add_argument("--types", action="store_true", help="say what mypy finds in them, and run nothing")
    options = parser.parse_args()
    if options.types:
        said = wrong_types([path.resolve() for path in options.pages])
        print(*said, sep="\n", end="\n" if said else "")
        return int(bool(said))
    wrong = 0
    for path in options.pages:
        path = path.resolve()
        found = run(path)
        if options.write:
            write(path, found)
            found = run(path) if found else []
        for each in found:
            print(f"{path}, line {each.at + 1}\n  printed: {each.expected!r}\n  came:    {each.came!r}")
        wrong += len(found)
    return int(wrong > 0)


if __name__ == "__main__":
    os.environ.setdefault("DFEAS_PROGRESS", "0")
    sys.exit(main())

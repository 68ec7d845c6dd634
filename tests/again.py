"""``pytest -p tests.again``: a test of clusters or faults that fails is run again, alone, when all others have ended.

A busy machine fails one of them now and then. One that passes each time counts as passed, and a line ``FLAKY NAME`` says so
below its traceback; one that fails once more has failed, and so has every other test that fails, which is never run again.
"""

import re
import subprocess
import sys

import pytest

TIMES = 3
MOST = 20
"""Where more tests fail there is a reason, and none is run again."""
FOLDERS = re.compile(r"tests/(cluster|dask_users|engine|faults)/")
FLAKY = pytest.StashKey[list[pytest.TestReport]]()


def is_of_clusters(report: pytest.CollectReport | pytest.TestReport) -> bool:
    return isinstance(report, pytest.TestReport) and ("cluster" in report.keywords or bool(FOLDERS.match(report.nodeid)))


def passes_alone(config: pytest.Config, test: str) -> bool:
    """Each time, in a process of its own."""
    warnings = [f"-W{each}" for each in config.known_args_namespace.pythonwarnings or ()]
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", *warnings, test]
    for _ in range(TIMES):
        done = subprocess.run(command, cwd=config.rootpath, capture_output=True, text=True, check=False)
        if done.returncode or not re.search(r"^1 passed", done.stdout, re.MULTILINE):
            return False
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Behind xdist, whose processes have ended then, and before the summary, which counts what is left of the failures."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
        return
    stats = reporter.stats
    failed = dict.fromkeys(each.nodeid for kind in ("failed", "error") for each in stats.get(kind, ()) if is_of_clusters(each))
    flaky = {test for test in failed if len(failed) <= MOST and passes_alone(session.config, test)}
    passed = {each.nodeid for each in stats.get("passed", ())}
    told = session.config.stash.setdefault(FLAKY, [])
    for kind in ("failed", "error"):
        told += [each for each in stats.get(kind, ()) if each.nodeid in flaky]
        stats[kind] = [each for each in stats.get(kind, ()) if each.nodeid not in flaky]
    stats.setdefault("passed", []).extend({each.nodeid: each for each in told if each.nodeid not in passed}.values())
    if not stats["failed"] and not stats["error"]:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    flaky = config.stash.get(FLAKY, [])
    for report in flaky:
        terminalreporter.write_sep("_", report.nodeid)
        terminalreporter.write_line(report.longreprtext)
    for test in dict.fromkeys(report.nodeid for report in flaky):
        terminalreporter.write_line(f"FLAKY {test}: failed once, and passed {TIMES} times alone")

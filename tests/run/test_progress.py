"""Progress of writing: rate and time left, now and then."""

import io

from dfeas.run.progress import IngestProgress


class Live(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_rate_and_time_left() -> None:
    seconds = iter([0.0, 1.0, 10.0, 12.0, 20.0])
    stream = io.StringIO()
    progress = IngestProgress(stream, clock=lambda: next(seconds))
    for done, total in ((100, 2000), (1000, 2000), (1200, 2000), (2000, 2000)):
        progress(done, total)
    assert stream.getvalue().splitlines() == [
        "1000 of 2000 points  100 points/s  about 10 s left",
        "2000 points written in 20.0 s, 100 points/s",
    ]


def test_a_terminal_has_one_line() -> None:
    seconds = iter([0.0, 1.0, 2.0])
    stream = Live()
    progress = IngestProgress(stream, clock=lambda: next(seconds))
    progress(500, 1000)
    progress(1000, 1000)
    first, second = stream.getvalue().split("\r")[1:]
    assert first == "500 of 1000 points  500 points/s  about 1 s left"
    assert second.rstrip(" \n") == "1000 points written in 2.0 s, 500 points/s"
    assert second.endswith("\n")

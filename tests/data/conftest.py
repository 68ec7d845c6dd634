from collections.abc import Iterator

import pytest

from tests.data.s3 import Door, serving


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Door, dict[str, str]]]:
    """A server that speaks S3, and the environment that leads to it."""
    with serving() as found:
        yield found

"""The laws of a checker: what is true is proved, with the same bits on any threads, and every change of it is refused."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import pytest

from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, UsageError
from tests.bits import content


class CheckerTests(ABC):
    """Subclass for each checker; a claim is whatever it checks, with its data."""

    names: Collection[str]
    """Of the claims, all of them true."""
    changes: ClassVar[Mapping[str, Callable[[Any], Any]]]
    """Each makes a claim that is not proved of a true one; None where it would change nothing."""

    @abstractmethod
    def claim(self, name: str) -> Any:
        """One that is true."""

    @abstractmethod
    def check(self, claim: Any, threads: int = 1) -> Any:
        """What the checker proves of it. Raises what the checker does."""

    @abstractmethod
    def require_true(self, claim: Any, proved: Any) -> None:
        """Assert what was proved, by other means."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "name" in metafunc.fixturenames:
            metafunc.parametrize("name", list(self.names))

    def test_what_is_true_is_proved(self, name: str) -> None:
        claim = self.claim(name)
        self.require_true(claim, self.check(claim))

    def test_the_proof_has_the_same_bits_on_any_threads(self, name: str) -> None:
        claim = self.claim(name)
        assert len({content(self.check(claim, threads)) for threads in (1, 1, 2, 5)}) == 1

    def test_every_change_is_refused(self, name: str) -> None:
        claim, refused = self.claim(name), 0
        for what, change in self.changes.items():
            changed = change(claim)
            if changed is None:
                continue
            with pytest.raises((CheckFailedError, CorruptDataError, BadInputError, UsageError)) as error:
                pytest.fail(f"{what}: {self.check(changed)}")
            assert "\n" not in str(error.value), what
            refused += 1
        assert refused > 1

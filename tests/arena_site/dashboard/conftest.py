"""The instant at which each module's tests take place."""

from collections.abc import Iterator

import pytest
import time_machine


@pytest.fixture(autouse=True)
def _at_the_modules_instant(request: pytest.FixtureRequest) -> Iterator[None]:
    if (now := getattr(request.module, "NOW", None)) is None:
        yield
    else:
        with time_machine.travel(now, tick=False):
            yield

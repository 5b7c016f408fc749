"""Whether there is a browser to look with at all."""

import os
import warnings

import pytest

from tests.browser.conftest import CHROMIUM

ABSENT = "NO CHROMIUM ON THIS MACHINE: NONE OF THE BROWSER TESTS RAN (apt-get install chromium)"


def test_there_is_a_browser() -> None:
    if CHROMIUM is None:
        assert os.environ.get("CI") != "true", ABSENT
        warnings.warn(ABSENT, stacklevel=1)
        pytest.skip(ABSENT)

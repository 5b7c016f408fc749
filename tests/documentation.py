"""Code examples of the documentation, for tests that run them."""

import re
from pathlib import Path

AGENTS = Path(__file__).resolve().parents[1] / "docs" / "agents.md"


def example_client() -> str:
    """The example client of an external agent."""
    (code,) = re.findall(r"```python\n(.*?)```", AGENTS.read_text(), re.DOTALL)
    return code

"""What the README shows, as it stands there."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def external_client() -> str:
    """The example client of an external agent."""
    section = README.read_text().split("## Bring your own agent")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return code

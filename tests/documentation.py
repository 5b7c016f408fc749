"""Code examples of the documentation, for tests that run them."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def code_blocks(heading: str, language: str) -> list[str]:
    """The examples in a language below a heading of docs/agents.md."""
    (section,) = re.findall(rf"\n## {heading}\n(.*?)(?=\n## |\Z)", (DOCS / "agents.md").read_text(), re.DOTALL)
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def example_client() -> str:
    """The example client of an external agent."""
    (code,) = code_blocks("The bare protocol", "python")
    return code


def notebook_code(name: str) -> str:
    """The code cells of a notebook as one program."""
    cells = json.loads((DOCS / "notebooks" / name).read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")

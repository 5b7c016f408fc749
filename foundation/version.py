VERSION = "1.0.0"
"""Of the arena, as in pyproject.toml and the headings of CHANGELOG.md."""

"""One file of the package's modules, which is part of every archive."""

import ast
from collections import defaultdict
from importlib import resources

MODULES = (
    "rows", "files", "weeks", "signatures", "chains", "receipts", "envelopes", "answer_texts", "decisions", "forecasts",
    "instructions", "answers", "searches", "texts", "ledger", "portfolios", "scores", "intervals", "order_books",
    "trading_leaderboard", "forecast_leaderboards", "agents_boards", "condition_differences", "published_boards",
    "program",
)  # fmt: skip
"""In the order in which their names are needed; the last one's description is that of the file."""


def program_text() -> str:
    """The text of `verify_arena.py`: a program that needs the standard library alone."""
    imports: dict[str, set[str]] = defaultdict(set)
    sections, description = [], ""
    for name in MODULES:
        source = resources.files("arena_verifier").joinpath(f"{name}.py").read_text(encoding="utf-8")
        lines, (docstring, *body) = source.splitlines(), ast.parse(source).body
        start = next(place for place, node in enumerate(body) if not isinstance(node, ast.Import | ast.ImportFrom))
        for node in body[:start]:
            if isinstance(node, ast.Import):
                imports[node.names[0].name] |= set()
            elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("arena_verifier"):
                imports[str(node.module)] |= {alias.name for alias in node.names}
        description = "\n".join(lines[: docstring.end_lineno])
        title = lines[0].removeprefix('"""').removesuffix('"""')
        code = "\n".join(lines[docstring.end_lineno :][body[start].lineno - 1 - (docstring.end_lineno or 0) :])
        sections.append(f"# {title}\n\n\n{code}" if name != MODULES[-1] else code)
    plain = sorted(module for module, names in imports.items() if not names)
    statements = [f"import {module}" for module in plain]
    for module, names in sorted(imports.items()):
        if names:
            statements.append(f"from {module} import {', '.join(sorted(names))}")
    head = "\n".join([description, "", *statements])
    return "\n\n\n".join([head, *sections]) + "\n"

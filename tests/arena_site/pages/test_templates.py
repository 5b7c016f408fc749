"""The pages' templates: each can be read, and none names a method that it does not call."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import engines
from jinja2 import nodes

FOLDER = Path(settings.BASE_DIR) / "templates" / "pages"
METHODS = re.compile(r"get_\w+_display|all|exists|has_\w+|items|keys|\w+_page_number")
"""What the templates' values can do; a method that is not called would be printed as one, or be true."""


def templates() -> list[str]:
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))


def test_there_are_templates() -> None:
    assert "base.html" in templates()


@pytest.mark.parametrize("name", templates())
def test_a_template_can_be_read_and_calls_the_methods_it_names(name: str) -> None:
    env = engines["jinja2"].engine.env  # type: ignore[attr-defined]
    env.get_template(name)
    tree = env.parse((FOLDER / name).read_text())
    called = {id(call.node) for call in tree.find_all(nodes.Call)}
    attributes = [node for node in tree.find_all(nodes.Getattr) if METHODS.fullmatch(node.attr)]
    assert [f"line {node.lineno}: {node.attr}" for node in attributes if id(node) not in called] == []


def test_text_is_escaped_and_missing_values_are_empty() -> None:
    env = engines["jinja2"].engine.env  # type: ignore[attr-defined]
    template = env.from_string("{{ text }}|{{ no.part }}|{{ no|money }}|{% if no is none %}none{% endif %}")
    assert template.render(text="<b>") == "&lt;b&gt;||–|none"

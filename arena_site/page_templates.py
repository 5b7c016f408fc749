"""The template engine of the pages, which loads Jinja with the first page: most commands make none."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.template.backends.base import BaseEngine

if TYPE_CHECKING:
    from django.template.backends.jinja2 import Jinja2


class PageTemplates(BaseEngine):
    """Django's Jinja engine, made when it is first asked for a template; the system checks make every engine."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        super().__init__({name: value for name, value in params.items() if name != "OPTIONS"})

    @cached_property
    def engine(self) -> "Jinja2":
        from django.template.backends.jinja2 import Jinja2

        return Jinja2(self.params)

    def from_string(self, template_code: str) -> Any:
        return self.engine.from_string(template_code)

    def get_template(self, template_name: str) -> Any:
        return self.engine.get_template(template_name)

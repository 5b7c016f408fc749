"""Parsing of JSON bodies."""

import io
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

MAX_CONTAINERS = 100
"""Objects and lists in a body; each may be nested in the one before."""


class BoundedJsonParser(JSONParser):
    """Parses JSON of few objects, since reading or quoting what is nested deeply exhausts the stack."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body = stream.read()
        if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS:
            raise ParseError(f"holds more than {MAX_CONTAINERS} objects and lists")
        return super().parse(io.BytesIO(body), media_type, parser_context)

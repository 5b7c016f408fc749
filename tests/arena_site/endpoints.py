"""The lists of the API, of which those of one app are written alike."""

from collections.abc import Iterable
from typing import Any

from arena_site.api import ENDPOINTS
from tests.selection import one_per_rule

LISTS = sorted(ENDPOINTS)


def one_per_app(names: Iterable[str]) -> list[Any]:
    """The cases of a test of lists; the second and later ones that an app has with the same paging are thorough."""
    return one_per_rule(names, kind_of_list)


def kind_of_list(name: str) -> tuple[str, Any]:
    view = ENDPOINTS[name]
    return view.__module__.partition(".")[0], view.pagination_class

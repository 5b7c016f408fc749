"""Text as pages write it, against Django's own filters."""

from django.template import defaultfilters
from hypothesis import example, given
from hypothesis import strategies as st

from arena_site.pages import filters as arena

CHARACTERS = "ab \u0301e\u00e9…\U0001f600"
"""Among them one that combines with the one before it, which does not count."""


@given(st.text(st.sampled_from(CHARACTERS), max_size=12), st.integers(1, 12))
@example("plain text, cut in the middle", 9)
@example("ascii where it is cut, not behind\u0301", 9)
def test_text_is_cut_where_django_cuts_it(written: str, most: int) -> None:
    shown = arena.truncatechars(written, most)
    assert shown == (written if len(written) <= most else defaultfilters.truncatechars(written, most))

"""The words of a search: a limit to them, so that no request can make the database compare for long."""

MAX_WORDS = 8
"""Later words are ignored."""
IGNORED_WORDS = "A search uses its first eight words; the others were ignored."


def search_words(text: str) -> list[str]:
    """The words that a search looks for."""
    return text.split()[:MAX_WORDS]


def has_ignored_words(text: str) -> bool:
    return len(text.split()) > MAX_WORDS

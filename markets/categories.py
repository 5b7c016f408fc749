"""Categories of markets and questions: one name for those that venues call differently."""

NAMES_BY_CATEGORY = {
    "Business": ("Companies",),
    "Crypto": ("Cryptocurrency", "Cryptocurrencies", "NFTs"),
    "Culture": ("Entertainment", "Pop Culture"),
    "Economy": ("Economics",),
    "Finance": ("Financials",),
    "Health": ("Coronavirus",),
    "Politics": (
        *("Elections", "Global Elections", "Global Politics", "Midterms", "US Election", "US Elections"),
        *("US Politics", "World Elections"),
    ),
    "Science": ("Science and Technology",),
    "Sports": (
        *("Basketball", "Champions League", "Chess", "EPL", "La Liga", "NBA", "NBA Playoffs", "Olympics"),
        *("Premier League", "Soccer"),
    ),
    "Tech": ("Technology",),
    "Weather": ("Climate", "Climate and Weather"),
}
"""By category, other names of the same subject, or of a part of it: categories and tags of Polymarket and Kalshi."""


def canonical_category(name: str) -> str:
    """The category that a venue's name stands for; a name that is not listed stands for itself."""
    return _CATEGORIES.get(_key(name), name)


def _key(name: str) -> str:
    """The name without the differences that carry no meaning: `Pop-Culture ` is `pop culture`."""
    return " ".join(name.replace("-", " ").replace("&", " and ").split()).casefold()


_CATEGORIES: dict[str, str] = {}
for _category, _synonyms in NAMES_BY_CATEGORY.items():
    for _name in (_category, *_synonyms):
        _CATEGORIES[_key(_name)] = _category

"""Reproducible random numbers: every generator is seeded by a key."""

from random import Random


def seeded_random(*key: object) -> Random:
    """A generator that yields the same numbers for the same key."""
    return Random("/".join(map(str, key)))

"""Writes of this floor: the catalogue's sync, accepted prices, frozen universes."""

"""Methodology versions as data, one module each; a published one is never edited."""

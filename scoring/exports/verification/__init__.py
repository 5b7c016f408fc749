"""Verification of an archive from its own files, and of the database by the same rules."""

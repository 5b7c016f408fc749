"""Verification of an archive from its own files: one module for each thing that is checked."""

"""Readers of other publishers' file formats, which convert them to long-form rows."""

"""Metrics as functions of arrays and panels, without state. NumPy and SciPy alone."""

"""Market data by venue: one package each behind the interface in `base`, listed in `registry`."""

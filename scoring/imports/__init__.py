"""Other people's forecasts, read from their own file formats into the long form that `rank` takes: no database."""

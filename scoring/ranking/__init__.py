"""The scoring suite over a file of forecasts: read it, score it, compare, print, draw. No database."""

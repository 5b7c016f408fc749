"""Ranking a file or frame of forecasts: reading, scoring, comparing, tables and pictures."""

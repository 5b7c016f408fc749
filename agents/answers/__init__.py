"""Answers of models, from their text to what they state. Needs no database."""

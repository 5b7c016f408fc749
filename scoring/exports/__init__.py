"""Archives of the arena's data, and their verification from their own rows."""

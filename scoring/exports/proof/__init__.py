"""The proof of an archive from its own rows. Reads files alone: no database is needed, and none is touched."""

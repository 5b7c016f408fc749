"""Everything the arena knows as an archive, and the proof of such an archive from its own rows."""

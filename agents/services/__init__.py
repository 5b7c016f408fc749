"""Writes of this floor: enrolling agents, deciding, executing, the ledger, settling."""

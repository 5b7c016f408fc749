"""Writes of this floor: Brier rows, snapshots, leaderboards; and the proof of the ledger."""

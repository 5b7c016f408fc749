"""Services of this app: scores, snapshots, leaderboards, and the verification of derived rows."""

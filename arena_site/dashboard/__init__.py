"""The operator's desk: what the front page of the admin says, and the acts by which things are set right."""

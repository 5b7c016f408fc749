"""Where markets come from: one module per venue, all speaking the shapes of `base`."""

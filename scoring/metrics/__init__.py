"""The scoring maths: arrays in, arrays out. No Django, no state; usable alone."""

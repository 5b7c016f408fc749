"""An arena of any size, made in bulk: to see whether pages, jobs and proofs bear a season that has not been yet.

Nothing in it happened. Its books balance, its hashes match and its scores follow from its rows all the same.
"""

"""A whole season on one machine: a local stand-in for Polymarket's Gamma and CLOB, for Kalshi and for OpenRouter.

Everything it answers is a function of the seed, its clock and the request. It knows nothing of the
arena, so the arena meets it only over HTTP, as it would meet the real services.
"""

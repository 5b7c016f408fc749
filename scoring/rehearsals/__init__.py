"""Rehearsals: one agent plays a span of the past by the services of live weeks, in a scratch database."""

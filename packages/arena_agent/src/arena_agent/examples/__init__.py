"""Agents to begin with: copy one, and `arena-agent check` it."""

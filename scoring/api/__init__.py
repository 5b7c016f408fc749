"""Endpoints of the REST API about scores, values and exports."""

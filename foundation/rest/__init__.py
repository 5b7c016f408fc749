"""Bases of the REST API: read-only view sets and serializers, strict filters, ordering and pagination.

`arena_site.api` knows all endpoints and imports their modules, so these can not import it.
"""

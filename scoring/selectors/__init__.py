"""Reads of this app: figures that pages, the API and the admin take from stored scores and leaderboards."""

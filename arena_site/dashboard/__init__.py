"""The operator dashboard: the admin's front page, and the actions with which operators correct things."""

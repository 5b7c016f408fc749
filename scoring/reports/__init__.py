"""Reports: computed tables, each declared once as columns for API and archive."""

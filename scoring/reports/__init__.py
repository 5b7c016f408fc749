"""Reports: computed tables, each declared once as columns for API, archive, pages and CSV."""

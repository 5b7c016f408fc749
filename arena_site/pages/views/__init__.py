"""Views of the public pages, one module for each kind of page, and modules that several of them share."""

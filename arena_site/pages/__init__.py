"""The public pages: views, charts, feeds, share images and the template language they are written in."""

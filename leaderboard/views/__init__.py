"""Pages, one module for each part of the site."""

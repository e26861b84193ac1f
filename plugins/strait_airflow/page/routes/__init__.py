"""The page's interface, one module for each view."""

"""A link as its operators see it, from plans and reports."""

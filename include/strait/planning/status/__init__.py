"""Status of a link for its operators, from plans and reports."""

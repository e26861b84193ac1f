"""Links made for a test, their slots and their load."""

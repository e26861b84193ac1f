"""What the page answers, from what was seen. Pure."""

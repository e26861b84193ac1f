"""Pictures for the documentation."""

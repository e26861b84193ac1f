"""What the reports of the last while say: rates, and whether retention overtakes a copy."""

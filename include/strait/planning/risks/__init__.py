"""What may go wrong with what was planned, told beforehand."""

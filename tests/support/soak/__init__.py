"""One fault after the other at a link that copies."""

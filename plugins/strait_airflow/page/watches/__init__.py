"""What the page follows in the background, one module for each kind of thing."""

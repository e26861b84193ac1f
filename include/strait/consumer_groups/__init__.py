"""Consumer groups of a link: offsets translated for any caller, and committed on the destination."""

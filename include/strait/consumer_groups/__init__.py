"""Consumer groups of a link: offsets translated for anybody, and committed on the destination."""

"""Moving a link's clients from its source to its destination, step by step."""

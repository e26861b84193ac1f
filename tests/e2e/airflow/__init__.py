"""A package, so that what its fixtures of scope `package` have started ends with its last test, not with the session."""

"""The one recovery path: determines the position at which a partition resumes whenever it is unknown."""

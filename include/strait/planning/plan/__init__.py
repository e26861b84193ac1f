"""The plan itself: drafts, pauses, and the decision about every topic."""

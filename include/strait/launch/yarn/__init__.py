"""Applications whose drivers run in containers of YARN, which restarts a lost driver."""

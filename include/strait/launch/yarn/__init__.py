"""Applications whose drivers run in containers of YARN, which starts a lost one again."""

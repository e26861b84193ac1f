"""The `strait` command."""

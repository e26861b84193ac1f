"""The `strait` command. Each command lives in its own module; the work itself is done by the package."""

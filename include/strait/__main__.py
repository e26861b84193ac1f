"""`python -m strait`: the `strait` command without an installed script, such as in an image with Strait on `PYTHONPATH`."""

from strait.cli.main import main

if __name__ == "__main__":
    main()

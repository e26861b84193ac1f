"""Rich's console, with everything that it prints made printable (see `strait.cli.printing`)."""

from typing import Any

from rich.console import Console

from strait.text import printable_lines


class PrintableConsole(Console):
    """A console for text that is not markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print. Without a terminal, lines do not end with the blanks that fill a table's cells."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        self.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def render_str(self, text: str, *args: Any, **options: Any) -> Any:
        return super().render_str(printable_lines(text), *args, **options)

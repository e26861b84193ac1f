"""What is done in machine code, or in Python where there was no compiler."""

import pytest

from strait.wire import columns, json_values

WAYS = [
    pytest.param(
        False, id="compiled", marks=pytest.mark.skipif(columns.columnar is None, reason="columnar was not compiled")
    ),
    pytest.param(True, id="plain"),
]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which it is done."""
    if request.param:
        for module in (columns, json_values):
            monkeypatch.setattr(module, "columnar", None)

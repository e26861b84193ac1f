"""What the benchmark holds of memory, and gives back."""

import os
from pathlib import Path

from mm2.ballast import ballast

MIB = 1 << 20


def test_it_is_given_back_as_the_copy_grows_and_leaves_no_file(tmp_path: Path) -> None:
    with ballast(tmp_path, 8 * MIB) as held:
        descriptor = held._descriptor
        assert os.fstat(descriptor).st_size == 8 * MIB
        assert os.fstat(descriptor).st_blocks > 0
        held.keep(0.25)
        assert os.fstat(descriptor).st_size == 2 * MIB
        held.keep(-0.1)
        assert os.fstat(descriptor).st_size == 0
        assert list(tmp_path.iterdir()) == []

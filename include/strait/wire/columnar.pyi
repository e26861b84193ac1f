from typing import Any

def decoded(
    data: Any, records: int, base_ms: int, row: int, times: Any, keys: list[Any], values: list[Any], headers: list[Any]
) -> int: ...
def encoded(
    first: int, behind: int, front: int, times: Any, keys: list[Any], values: list[Any], headers: list[Any]
) -> bytearray: ...

"""The next item is made while one is used, where there is a second core."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items in the same order, the next one made by another thread.

    That pays where making them holds no lock of the interpreter, as compiled kernels and products of matrices do.
    """
    with ThreadPoolExecutor(1, "jointbench-ahead") as other:
        coming = other.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = other.submit(next, items, None)
            yield item

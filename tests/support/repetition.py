"""Work that a test repeats in the background, such as a load on servers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def repeated(action: Callable[[], object], pause_s: float = 0.0) -> Iterator[None]:
    """Call `action` again and again in a thread during a block, with a pause before each call.

    An exception that it raises ends the calls, and is raised at the end of the block.
    """
    stopping = threading.Event()

    def loop() -> None:
        while not stopping.wait(pause_s):
            action()

    with ThreadPoolExecutor(1) as executor:
        calls = executor.submit(loop)
        try:
            yield
        finally:
            stopping.set()
        calls.result()

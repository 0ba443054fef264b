"""Pages that close, whenever they do: nobody need hear of it."""

import asyncio
import gc
from asyncio import Future
from typing import Any

import pytest
from tornado.websocket import WebSocketClosedError

from jointbench.bench.monitor.server import Audience


class ClosingPage:
    """It closes while text is on its way to it."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write_message(self, message: str) -> Future[None]:
        async def send() -> None:
            await asyncio.sleep(0)
            raise self.error

        return asyncio.ensure_future(send())


@pytest.mark.parametrize(("error", "told"), [(WebSocketClosedError(), 0), (OSError("no memory"), 1)])
def test_only_what_is_not_a_closed_page_is_told(error: Exception, told: int) -> None:
    heard: list[dict[str, Any]] = []

    async def tell() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        audience = Audience(lambda _: True)
        page = ClosingPage(error)
        audience.join(page)
        audience.tell({"kind": "state"})
        for _ in range(4):
            await asyncio.sleep(0)
        audience.leave(page)
        gc.collect()

    asyncio.run(tell())
    assert len(heard) == told

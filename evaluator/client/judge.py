"""Judges kernels while a model is trained or evaluated: many at once, on a site or on this host."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Protocol, TypeVar, Union

from .credentials import checked_token, is_in_clear, normal, site_called
from .failures import Misused
from .flights import Flight
from .items import Item, Result, as_item, result_of
from .rewards import Reward, reward_called
from .transport import SiteAddress

Given = Union[Item, Mapping[str, Any]]
Own = TypeVar("Own", bound="BaseJudge")
IN_FLIGHT, PATIENCE_S = 32, 600.0
_END = object()


class AnyFlight(Protocol):
    """Keeps items between `add` and `take`; see Flight."""

    @property
    def has_room(self) -> bool: ...
    @property
    def has_unsent(self) -> bool: ...
    @property
    def is_waiting(self) -> bool: ...
    def add(self, item: Item) -> None: ...
    def take(self) -> list[tuple[Item, Mapping[str, Any]]]: ...
    def send(self) -> None: ...
    def fetch(self) -> None: ...
    def cancel(self) -> None: ...


class BaseJudge:
    """Judges items by flights. `stream` and `batch` are for `async` code, `stream_sync` and
    `batch_sync` do the same without. All raise `pkb.Failure` where no answer comes in time, and
    ValueError for what is no item."""

    def __init__(self, reward: str | Reward, rewards_flagged: bool) -> None:
        self._reward, self._rewards_flagged = reward_called(reward), rewards_flagged
        self.session, self._numbers = secrets.token_hex(6), count(1)

    def _flight(self) -> AnyFlight:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the judge holds."""

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self: Own) -> Own:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    async def stream(self, items: Iterable[Given] | AsyncIterable[Given]) -> AsyncIterator[Result]:
        """Yield a result of each item as it ends; ids tell which is which.

        Items are taken from the iterable only as there is room for them. What was not begun is
        cancelled where the loop is left early.
        """
        flight, threads = self._flight(), ThreadPoolExecutor(2, thread_name_prefix="pkb")
        turns = _Turns(flight, threads, _coming(items), self._named)
        try:
            while await turns.take_one():
                for answered in flight.take():
                    yield self._result(*answered)
        finally:
            turns.cancel()
            await asyncio.get_running_loop().run_in_executor(None, flight.cancel)
            threads.shutdown(wait=False)

    def stream_sync(self, items: Iterable[Given]) -> Iterator[Result]:
        """Yield a result of each item as it ends, as `stream` does."""
        flight, coming, is_over = self._flight(), iter(items), False
        try:
            while True:
                while flight.has_room and not is_over:
                    given = next(coming, _END)
                    if given is _END:
                        is_over = True
                    else:
                        flight.add(self._named(given))  # type: ignore[arg-type]
                if flight.has_unsent:
                    flight.send()
                elif flight.is_waiting:
                    flight.fetch()
                answered = flight.take()
                yield from (self._result(*each) for each in answered)
                if is_over and not (answered or flight.has_unsent or flight.is_waiting):
                    return
        finally:
            flight.cancel()

    async def batch(self, items: Iterable[Given]) -> list[Result]:
        """Return a result of each item, in their order."""
        named = [self._named(each) for each in items]
        found = {result.id: result async for result in self.stream(named)}
        return [found[str(item.id)] for item in named]

    def batch_sync(self, items: Iterable[Given]) -> list[Result]:
        """Return a result of each item, in their order."""
        named = [self._named(each) for each in items]
        found = {result.id: result for result in self.stream_sync(named)}
        return [found[str(item.id)] for item in named]

    def _named(self, given: Given) -> Item:
        return as_item(given).named(f"{self.session}-{next(self._numbers)}")

    def _result(self, item: Item, report: Mapping[str, Any]) -> Result:
        flagged = self._rewards_flagged
        return result_of(item, report, self._reward, rewards_flagged=flagged)


class Judge(BaseJudge):
    """Judges on the hosts of a site, with a token of the scope `submit`.

    Without an address or a token, those of `pkb login`, `PKB_SITE` and `PKB_TOKEN` are used. A site
    lets `in_flight` judgements of yours wait or run at a time, up to its own limit. A site that is
    away is asked again for `patience_s` seconds. `reward` is a preset's name or a function of a
    report; suspicious results have none unless `rewards_flagged`.
    """

    def __init__(
        self,
        site: str | None = None,
        token: str | None = None,
        *,
        reward: str | Reward = "correct",
        rewards_flagged: bool = False,
        in_flight: int = IN_FLIGHT,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(reward, rewards_flagged)
        if in_flight < 1:
            raise ValueError("in_flight is 1 or more")
        self._site = _address(site, token)
        self._in_flight, self._patience_s = in_flight, patience_s

    def _flight(self) -> Flight:
        return Flight(self._site, self._in_flight, self._patience_s)


def _address(site: str | None, token: str | None) -> SiteAddress:
    """Return the site to ask. Raises Misused without a token, or if it would travel in clear."""
    found = site_called(site)
    if token is not None:
        found = SiteAddress(normal(site) if site else found.url, checked_token(token))
    if found.token is None:
        raise Misused("There is no token.", "Make one at /account, and pass it or set PKB_TOKEN.")
    if is_in_clear(found.url):
        raise Misused(f"{found.url} is not encrypted.", "Use https: others could read the token.")
    return found


async def _coming(items: Iterable[Given] | AsyncIterable[Given]) -> AsyncIterator[Given]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class _Turns:
    """Runs the three things of a stream at once: the next item, one send, one fetch."""

    def __init__(
        self,
        flight: AnyFlight,
        threads: ThreadPoolExecutor,
        items: AsyncIterator[Given],
        named: Callable[[Given], Item],
    ) -> None:
        self._flight, self._threads, self._items, self._named = flight, threads, items, named
        self._is_over = False
        self._tasks: dict[str, asyncio.Future[Any]] = {}

    async def take_one(self) -> bool:
        """Go on until one of them is done; return False where nothing is left to do."""
        self._begin()
        if not self._tasks:
            return bool(self._flight.has_unsent or self._flight.is_waiting)
        await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        for name, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[name]
                self._end(name, task)
        return True

    def cancel(self) -> None:
        """Let go of what is not done."""
        for task in self._tasks.values():
            task.cancel()

    def _begin(self) -> None:
        flight, loop = self._flight, asyncio.get_running_loop()
        if "item" not in self._tasks and not self._is_over and flight.has_room:
            self._tasks["item"] = asyncio.ensure_future(self._next())
        for name, is_due in (("send", flight.has_unsent), ("fetch", flight.is_waiting)):
            if name not in self._tasks and is_due:
                self._tasks[name] = loop.run_in_executor(self._threads, getattr(flight, name))

    def _end(self, name: str, task: asyncio.Future[Any]) -> None:
        found = task.result()
        if name != "item":
            return
        if found is _END:
            self._is_over = True
        else:
            self._flight.add(self._named(found))

    async def _next(self) -> Any:
        try:
            return await self._items.__anext__()
        except StopAsyncIteration:
            return _END

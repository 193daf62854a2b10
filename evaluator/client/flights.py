"""Keeps judgements in flight at a site: sends batches, fetches answers, is patient."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from .failures import Failure, NoAnswer, Refused
from .items import Item, not_sent
from .transport import SiteAddress

BATCH, RESULTS, CANCEL = (f"/api/v1/training/{name}" for name in ("batch", "results", "cancel"))
HEADERS = {"Content-Type": "application/json"}
BATCH_ITEMS, BATCH_BYTES = 16, 2 << 20  # before its last item
WAIT_S, PAUSE_S, LONGEST_PAUSE_S = 10.0, 0.5, 30.0
MOST_LOST = 3
Answered = tuple[Item, Mapping[str, Any]]


class Waiting:
    """Holds unsent items, and answers that nobody has taken. Two threads may share it."""

    def __init__(self) -> None:
        self._unsent: deque[Item] = deque()
        self._answered: deque[Answered] = deque()

    @property
    def has_unsent(self) -> bool:
        """Return True if `send` has something to send."""
        return bool(self._unsent)

    def add(self, item: Item) -> None:
        """Take an item; a kernel that cannot run is answered here."""
        if (report := not_sent(item)) is not None:
            self._answered.append((item, report))
        else:
            self._unsent.append(item)

    def take(self) -> list[Answered]:
        """Return the answers since the last call."""
        found = []
        while self._answered:
            found.append(self._answered.popleft())
        return found


class Flight(Waiting):
    """Holds items from `add` until their report is taken. `most` may be in flight at once.

    `send` and `fetch` may be called by two threads at once. Where the site is away or full they ask
    again for `patience_s`; then they raise Failure. All that is asked may be asked twice.
    """

    def __init__(self, site: SiteAddress, most: int, patience_s: float) -> None:
        super().__init__()
        self._site, self._most, self._patience_s = site, most, patience_s
        self._out: dict[str, Item] = {}
        self._lost: dict[str, int] = {}
        self.is_ended = False

    @property
    def has_room(self) -> bool:
        """Return True if one more may be added."""
        return len(self._unsent) + len(self._out) < self._most

    @property
    def is_waiting(self) -> bool:
        """Return True if `fetch` has something to fetch."""
        return bool(self._out)

    def add(self, item: Item) -> None:
        """Take an item with an id; a kernel that cannot run is answered here. Raises ValueError
        for an id that is in flight."""
        if item.id in self._out or any(item.id == each.id for each in self._unsent):
            raise ValueError(f"the id {item.id} is in flight")
        super().add(item)

    def send(self) -> None:
        """Send the items that wait, one batch of them."""
        items, size = list[Item](), 0
        while self._unsent and len(items) < BATCH_ITEMS and size < BATCH_BYTES:
            items.append(self._unsent.popleft())
            size += len(json.dumps(items[-1].source))
        named = {str(item.id): item for item in items}
        try:
            answer = self._asked(BATCH, {"items": [item.wire() for item in items]})
        except Failure:
            self._unsent.extendleft(reversed(items))
            raise
        with _of_this_api():
            self._most = max(1, min(self._most, int(answer["in_flight"])))
            for told in answer["items"]:
                item = named[told["id"]]
                if told["status"] == "accepted":
                    self._out[told["id"]] = item
                else:
                    self._answered.append((item, _refused(told["error"])))

    def fetch(self) -> None:
        """Fetch reports; wait until there is one, for some seconds."""
        ids = list(self._out)
        answer = self._asked(RESULTS, {"ids": ids, "wait_s": WAIT_S})
        with _of_this_api():
            for told in answer["results"]:
                item = self._out.pop(told["id"], None)
                if item is not None:
                    self._answered.append((item, {**told["report"]}))
            for key in answer["unknown"]:
                self._again(key)
            is_empty = not answer["results"]
        if is_empty:
            time.sleep(PAUSE_S)

    def cancel(self) -> None:
        """Have the site forget what nobody has begun; asks once."""
        self.is_ended = True
        if ids := list(self._out):
            with contextlib.suppress(Failure):
                self._site.post(CANCEL, json.dumps({"ids": ids}).encode(), HEADERS)

    def _again(self, key: str) -> None:
        """Send an item again that the site has forgotten; give it up after some times."""
        item = self._out.pop(key, None)
        if item is None:
            return
        self._lost[key] = self._lost.get(key, 0) + 1
        if self._lost[key] < MOST_LOST:
            self._unsent.append(item)
        else:
            said = "the site forgot it: its results expire"
            self._answered.append((item, {"verdict": "lost", "feedback": said}))

    def _asked(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer to what may be asked twice."""
        data, pause_s = json.dumps(body).encode(), PAUSE_S
        until_s = time.monotonic() + self._patience_s
        while True:
            try:
                return self._site.post(path, data, HEADERS).json()
            except Failure as failure:
                wait_s = failure.retry_after_s or pause_s
                late = time.monotonic() + wait_s > until_s
                if self.is_ended or late or not (failure.is_passing or _is_full(failure)):
                    raise
            time.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@contextlib.contextmanager
def _of_this_api() -> Iterator[None]:
    """Raise NoAnswer for an answer of another shape: of another site, or of a newer one."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"an answer that this pkb does not know: {error!r}"
        raise NoAnswer(said, is_passing=False) from None


def _is_full(failure: Failure) -> bool:
    return isinstance(failure, Refused) and failure.code == "training_quota"


def _refused(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report of an item that the site did not take."""
    said = f"{error['message']} {error['fix']}"
    return {"verdict": "refused", "phase": "build", "code": error["code"], "feedback": said}

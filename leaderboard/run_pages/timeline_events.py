"""Makes of the timelines of a report the events of a figure: from zero on, waiting told apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from leaderboard.figures.charts.runs import COMMUNICATION, WAITING, LaneEvent
from leaderboard.kit.json_types import Report


def longest_events(timelines: Sequence[Report], most: int) -> list[LaneEvent]:
    """Return at most so many events over all ranks, in the order in which they began; the first
    begins at zero."""
    found = list(_events(timelines))
    is_whole = not any(timeline["dropped_events"] for timeline in timelines)
    told = waiting_apart(found) if is_whole else found
    longest = sorted(told, key=lambda event: event.duration_us, reverse=True)[:most]
    zero_us = min((event.start_us for event in longest), default=0.0)
    moved = [replace(event, start_us=event.start_us - zero_us) for event in longest]
    return sorted(moved, key=lambda event: (event.rank, event.start_us))


def _events(timelines: Iterable[Report]) -> Iterator[LaneEvent]:
    for timeline in timelines:
        for event in timeline["events"]:
            yield LaneEvent(
                rank=timeline["rank"],
                queue="stream" if timeline["device"] == "cuda" else "thread",
                lane=event["stream"],
                name=event["name"],
                kind=event["kind"],
                start_us=event["start_us"],
                duration_us=event["duration_us"],
            )


def waiting_apart(events: Sequence[LaneEvent]) -> list[LaneEvent]:
    """Part each communication where the last rank begins its own: before that no byte of it can
    have come, so it waits. Where ranks do not communicate equally often, nothing is parted."""
    by_rank: dict[int, list[LaneEvent]] = {event.rank: [] for event in events}
    for event in sorted(events, key=lambda event: event.start_us):
        if event.kind == COMMUNICATION:
            by_rank[event.rank].append(event)
    if len(by_rank) < 2 or len({len(own) for own in by_rank.values()}) != 1:
        return list(events)
    others = [event for event in events if event.kind != COMMUNICATION]
    together = zip(*by_rank.values(), strict=True)
    return [*others, *(part for meeting in together for part in _parted(meeting))]


def _parted(meeting: Sequence[LaneEvent]) -> Iterator[LaneEvent]:
    last_us = max(event.start_us for event in meeting)
    for event in meeting:
        waits_us = min(last_us - event.start_us, event.duration_us)
        if waits_us > 0:
            yield replace(event, kind=WAITING, duration_us=waits_us)
        if event.duration_us > waits_us:
            begins_us, left_us = event.start_us + waits_us, event.duration_us - waits_us
            yield replace(event, start_us=begins_us, duration_us=left_us)

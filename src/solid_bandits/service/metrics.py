"""Counters and durations, as Prometheus reads them."""

import threading
from collections import Counter
from collections.abc import Sequence

from solid_bandits.service.store import Event

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Seconds, of the histograms."""


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * len(BOUNDS)
        self.total = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        for place, bound in enumerate(BOUNDS):
            self.counts[place] += value <= bound
        self.total += value
        self.count += 1

    def lines(self, name: str, labels: str = "") -> list[str]:
        comma = f"{labels}," if labels else ""
        inside = f"{{{labels}}}" if labels else ""
        return [
            *(
                f'{name}_bucket{{{comma}le="{bound:g}"}} {count}'
                for bound, count in zip(BOUNDS, self.counts, strict=True)
            ),
            f'{name}_bucket{{{comma}le="+Inf"}} {self.count}',
            f"{name}_sum{inside} {self.total:.6f}",
            f"{name}_count{inside} {self.count}",
        ]


class Metrics:
    """What the service counts about itself since it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, _Histogram] = {}
        self._events: Counter[str] = Counter()
        self._groups = _Histogram()
        self._calls = 0

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is the path's pattern, not the path."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds.setdefault(route, _Histogram()).add(seconds)

    def group(self, calls: int, seconds: float) -> None:
        """A group of calls for one model was served and committed."""
        with self._lock:
            self._groups.add(seconds)
            self._calls += calls

    def committed(self, events: Sequence[Event]) -> None:
        """These are on the disk."""
        with self._lock:
            for event in events:
                self._events[event.kind] += 1

    def text(self) -> str:
        """All of it, in Prometheus's text format."""
        with self._lock:
            lines = [
                "# HELP solid_bandits_requests_total Requests answered.",
                "# TYPE solid_bandits_requests_total counter",
            ]
            for (method, route, status), count in sorted(self._requests.items()):
                lines.append(
                    f'solid_bandits_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                )
            lines += [
                "# HELP solid_bandits_request_seconds Time to answer a request.",
                "# TYPE solid_bandits_request_seconds histogram",
            ]
            for route, histogram in sorted(self._seconds.items()):
                lines += histogram.lines("solid_bandits_request_seconds", f'route="{route}"')
            lines += [
                "# HELP solid_bandits_events_total Events committed to the log.",
                "# TYPE solid_bandits_events_total counter",
                *(
                    f'solid_bandits_events_total{{kind="{kind}"}} {count}'
                    for kind, count in sorted(self._events.items())
                ),
                "# HELP solid_bandits_group_seconds Time to serve and commit a group of calls.",
                "# TYPE solid_bandits_group_seconds histogram",
                *self._groups.lines("solid_bandits_group_seconds"),
                "# HELP solid_bandits_group_calls_total Calls served in groups.",
                "# TYPE solid_bandits_group_calls_total counter",
                f"solid_bandits_group_calls_total {self._calls}",
            ]
            return "\n".join(lines) + "\n"

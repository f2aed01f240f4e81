"""Counters and durations in Prometheus's format."""

from collections import Counter as Count
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from solid_bandits.live.events import Event
from solid_bandits.service.budgets import Budgets, stated

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper ends of the histograms' buckets in seconds."""
USED = {
    "alive": "Whether the writer of the log is at work.",
    "writing": "Whether the last commit succeeded, or something could be written since.",
    "commit_age_seconds": "Seconds since something was last committed.",
    "models": "Models in memory.",
    "leading": "Models that this node leads.",
    "failed_model": "Seconds until a model that cannot be used is tried again.",
    "waiting_calls": "Calls that wait for the writer.",
    "calls_memory_bytes": "Approximate memory of calls that are not answered yet.",
    "decisions_memory_bytes": "Approximate memory of remembered decisions.",
    "open_decisions": "Decisions that wait for their rewards.",
    "windows": "Windows of all models together.",
    "reports_waiting": "Evaluations and logs at work or waiting.",
    "erasing": "Whether files may still have what was erased.",
}
"""Gauges that are measured on request, besides counters."""
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The service's counts about itself since it started."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        name, labels = "solid_bandits_requests", ("method", "route", "status")
        self._requests = Counter(name, "Requests answered.", labels, registry=own)
        name, words = "solid_bandits_request_seconds", "Time to answer a request."
        self._seconds = Histogram(name, words, ("route",), buckets=BOUNDS, registry=own)
        self._events = Counter(
            "solid_bandits_events", "Events committed to the log.", ("kind",), registry=own
        )
        name, words = "solid_bandits_group_seconds", "Time to serve and commit a group of calls."
        self._groups = Histogram(name, words, buckets=BOUNDS, registry=own)
        self._calls = Counter("solid_bandits_group_calls", "Calls served in groups.", registry=own)

        self._refused = Counter(
            "solid_bandits_refused", "Requests refused with 413, 429, 503 or 507.", ("status",), registry=own
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request; `route` is the path's pattern, not the path."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def group(self, calls: int, seconds: float) -> None:
        """Count a group of calls for one model that was served and committed."""
        self._groups.observe(seconds)
        self._calls.inc(calls)

    def committed(self, events: Sequence[Event]) -> None:
        """Count events that are on the disk."""
        for kind, count in Count(event.kind for event in events).items():
            self._events.labels(kind).inc(count)

    def watch(
        self, budgets: Budgets, used: Callable[[], Iterable[tuple[str, Mapping[str, str], float]]]
    ) -> None:
        """Report usage whenever metrics are requested: names, labels and values; and the budgets."""

        class Watched(Collector):
            def collect(self) -> Iterable[Metric]:
                limits = GaugeMetricFamily(
                    "solid_bandits_budget",
                    "What callers may take (docs/service.md).",
                    labels=("budget", "unit"),
                )
                for one in stated(budgets):
                    limits.add_metric((one.name, one.unit), one.value)
                yield limits
                families: dict[str, GaugeMetricFamily] = {}
                for name, labels, value in used():
                    family = families.setdefault(
                        name, GaugeMetricFamily(f"solid_bandits_{name}", USED[name], labels=tuple(labels))
                    )
                    family.add_metric(tuple(labels.values()), value)
                yield from families.values()

        self._registry.register(Watched())

    def refused(self, status: int) -> None:
        """Count a request that was refused for a budget or at a bad time."""
        self._refused.labels(status).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

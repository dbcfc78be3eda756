"""What is counted, as text for Prometheus."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import final

from knowmore.serve.following import Following

_PATHS = {"/predict", "/healthz", "/readyz", "/metrics", "/openapi.json"}
_PATHS |= {"/health", "/setup", "/train", "/webhook"}


@final
class Metrics:
    """Counts of requests, rows and time, and the state of the model."""

    def __init__(self, following: Following) -> None:
        self._following, self._lock = following, Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._rows = 0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request; whatever paths are tried, only ours are named."""
        path = path if path in _PATHS else "other"
        with self._lock:
            self._requests[path, status] += 1
            self._seconds[path] += seconds  # type: ignore[assignment]

    def rows(self, m: int) -> None:
        """Count rows that were answered."""
        with self._lock:
            self._rows += m

    def text(self) -> str:
        """All of it, in Prometheus' format."""
        with self._lock:
            requests, seconds, rows = dict(self._requests), dict(self._seconds), self._rows
        now, problem = self._following.now, self._following.problem
        counts: Counter[str] = Counter()
        for (path, _), n in requests.items():
            counts[path] += n
        lines = [*_about("requests_total", "counter", "Requests by path and status.")]
        for (path, status), n in sorted(requests.items()):
            lines.append(f'knowmore_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += _about("request_seconds", "summary", "Time that requests took, by path.")
        for path, time in sorted(seconds.items()):
            lines.append(f'knowmore_request_seconds_sum{{path="{path}"}} {time:.6f}')
            lines.append(f'knowmore_request_seconds_count{{path="{path}"}} {counts[path]}')
        gauges = [
            ("rows_total", "counter", "Rows that were answered.", rows),
            ("ready", "gauge", "Whether the file was read when last looked at.", int(not problem)),
            ("file_failures_total", "counter", "Failed looks at it.", self._following.failures),
            ("examples", "gauge", "Examples in the model.", 0 if now is None else now.count),
            ("version", "gauge", "Last entry of its journal.", 0 if now is None else now.version),
        ]
        for name, kind, what, value in gauges:
            lines += [*_about(name, kind, what), f"knowmore_{name} {value}"]
        return "\n".join([*lines, ""])


def _about(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP knowmore_{name} {what}", f"# TYPE knowmore_{name} {kind}"]

"""Taking the time of something that can be done again, as the demonstration of knowmore does."""

from knowmore.cli.stopwatch import median_seconds, one_thread, timed

__all__ = ["median_seconds", "one_thread", "timed"]

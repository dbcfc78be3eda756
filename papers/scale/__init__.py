"""Many real rows: Gaussian processes that hold sums or trees, against the usual peers."""

"""What of the documentation is not run here."""

# Its examples are those of the docstrings, which run where they stand.
collect_ignore = ["reference.md"]

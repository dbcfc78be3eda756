"""The `knowmore` command."""

"""`python -m knowmore` runs the `knowmore` command."""

from knowmore.cli import main

main()

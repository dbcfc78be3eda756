"""`python -m knowmore`: the command."""

from knowmore.cli import main

main()

"""`python -m papers`: the experiments as commands. Needs the extra `cli`."""

from __future__ import annotations

from knowmore.cli import guarded


def main() -> None:
    """Run the command, and say in words what is wrong."""
    guarded(_run)


def _run() -> None:
    from papers.command import app

    app(prog_name="python -m papers")


if __name__ == "__main__":
    main()

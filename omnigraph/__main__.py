"""Entry point for `python -m omnigraph`, which runs the command-line interface."""

from omnigraph.cli.main import main

main()

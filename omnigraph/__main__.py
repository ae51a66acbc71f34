"""Entry point of `python -m omnigraph`, which runs the command line."""

from omnigraph.cli.main import main

main()

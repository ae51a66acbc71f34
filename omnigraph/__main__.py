"""`python -m omnigraph`: the command line."""

from omnigraph.cli.main import main

main()

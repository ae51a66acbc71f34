"""The command line: translates arguments into calls, and results and errors into text or JSON.

The work itself is done by the layers below. Nothing here may slow down start-up: commands and their
dependencies are imported only when they run.
"""

"""The command-line interface, which translates arguments into calls, and results and errors into text or JSON.

The work itself is done by the layers below. To keep start-up fast, commands and their dependencies are imported only
when they run.
"""

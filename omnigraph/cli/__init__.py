"""The command-line interface: translate arguments into calls, and results and errors into text or JSON.

The packages that commands call, such as `omnigraph.api` and `omnigraph.client`, do the actual work. To keep start-up
fast, a command and its dependencies are imported only when the command runs.
"""

"""The command-line interface: translate arguments into calls, and results and errors into text or JSON.

The layers below do the actual work. To keep start-up fast, commands and their dependencies are imported only when they
run.
"""

"""The command line. It only translates: arguments to calls, results and errors to text or JSON.

The work is done by the layers below. Nothing here may slow the start: commands and their
dependencies are imported when they run.
"""

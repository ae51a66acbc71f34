"""The command line. It only translates: words to calls, results and errors to text or JSON.

Every verb lives in a layer below. Nothing here may slow the start: commands, and what they need,
are imported when they run.
"""

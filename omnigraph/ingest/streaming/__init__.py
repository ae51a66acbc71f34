"""Load large files in this process: write rows while the input is read, so that the rows are never all in memory.

This package owns the threads of such a load, and the data that they keep for rules that involve all records. Start with
`streamed_load`, then read `piece_stager`. The `rules` package defines what a valid graph is, and only `publish` makes
the rows visible.
"""

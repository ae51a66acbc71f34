"""Loads of large files in this process: whole rows are written while the input is read, and are never all in memory.

This package owns the threads of such a load and what they keep for the rules that involve all records. Start with
`streamed_load`, then read `piece_stager`. The rules themselves are in `rules`; nothing here decides what a valid graph
is, and nothing becomes visible before `publish`.
"""

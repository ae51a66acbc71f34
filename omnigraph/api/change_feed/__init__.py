"""The change feed as users see it: streams of commits, pages for polling, and baselines.

This package defines the cursors that a consumer stores, and the JSON documents of changes. The
comparison of two table versions is in `history`. Read first: `feed.py`.
"""

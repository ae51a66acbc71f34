"""The change feed as users see it: streams of commits, pages for polling, and baselines.

Owns cursors that a consumer stores, and the JSON documents of changes. How two versions of a table
are compared is in `history`. Read first: `feed.py`.
"""

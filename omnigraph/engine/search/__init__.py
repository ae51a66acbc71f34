"""Full-text and vector search inside a query: candidates, exact scores, rankings, fusion.

An index only proposes candidates; scores are computed from stored values, so a missing or stale
index never changes a result. Read first: `rank.py`, then `scoring.py`.
"""

"""Full-text and vector search within a query: candidates, exact scores, rankings and fusion.

An index only proposes candidates. Scores are computed from stored values, so a missing or stale index never changes a
result. Read `rank.py` first, then `scoring.py`.
"""

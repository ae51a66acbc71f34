"""Full-text and vector search within queries: candidate selection, exact scoring, ranking and fusion.

An index only proposes candidates. Scores are computed from stored values, so a missing or stale index never changes a
result. Start with `rank.py`, then read `scoring.py`.
"""

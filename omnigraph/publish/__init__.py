"""The write protocol: how a prepared change becomes a commit, and how a crash is cleaned up.

Owns plans and their requirements, the publish loop, intents of long operations, recovery,
idempotency keys, leases, and every change of a branch or a tag. Nothing else swaps a manifest.
Read first: `plan.py`, then `publish.py`, then `intent.py` and `recover.py`.
"""

"""The write protocol: how a prepared change becomes a commit, and how a crash is cleaned up.

This package owns plans and their requirements, the publish loop, intents for long operations,
recovery, idempotency keys, leases, and every change to a branch or tag. No other code swaps a manifest.
Read first: `plan.py`, then `publish.py`, then `intent.py` and `recover.py`.
"""

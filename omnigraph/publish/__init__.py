"""The write protocol: how a prepared change becomes a commit, and how interrupted writes are cleaned up.

This package owns plans and their requirements, the publish loop, intents for long operations,
recovery, idempotency keys, leases, and every change to a branch or tag. No code outside this package
swaps a manifest. Read `write_plan.py` first, then `publish.py`, `intent.py` and `recover.py`.
"""

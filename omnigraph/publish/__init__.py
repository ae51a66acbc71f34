"""The write protocol: how a prepared change becomes a commit, and how interrupted writes are cleaned up.

This package contains plans and their requirements, the publish loop, intents for long operations, recovery, idempotency
keys, leases, and every change to a branch or tag. Outside this package, only maintenance swaps manifests, in order to
raise fences, restore versions and upgrade the format. Start with `write_plan.py`, then read `publish.py`, `intent.py`
and `recover.py`.
"""

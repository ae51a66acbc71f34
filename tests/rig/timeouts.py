"""How long tests wait for an expected event.

It is no measure of speed: a machine under load may take most of it. Only what hangs exceeds it,
shortly before the limit of a whole test would end the run.
"""

PATIENCE = 100.0  # seconds

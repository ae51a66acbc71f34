"""Health of a graph: integrity check, status report, environment diagnosis, and repair.

Checks only read. Only `repair` publishes, and only with explicit confirmation. Start with `check`,
`status` and `repair`.
"""

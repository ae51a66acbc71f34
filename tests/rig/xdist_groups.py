"""Tests that share an expensive resource and run in one process of a parallel run.

Groups go by path. The marks of xdist do not work here: it writes a group into the node id of a
test, which pytest 9.2 makes from elsewhere, and every process would start a JVM of its own.
"""

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

GROUPS = (
    "tests/spark/",  # a JVM
    "tests/processes/",  # a crew of processes
    "tests/dist/test_wheel.py",  # a wheel that is built and installed
)


# The tests of one file share a server.
GROUPS_BY_FILE = ("tests/server/",)


def group_of(test: str) -> str | None:
    """The group of a test, by its node id.

    >>> group_of("tests/spark/test_scan.py::test_empty_table_has_its_columns")
    'tests/spark/'
    >>> group_of("tests/server/test_access.py::test_case_2")
    'tests/server/test_access.py'
    >>> group_of("tests/values/test_values.py::test_order")
    """
    if test.startswith(GROUPS_BY_FILE):
        return test.partition("::")[0]
    return next((one for one in GROUPS if test.startswith(one)), None)


class Groups(LoadGroupScheduling):  # type: ignore[misc]
    """Gives each group to one process, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or str(super()._split_scope(nodeid))

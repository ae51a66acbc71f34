"""Reduced programs of branches and merges that once failed, with the cause of each."""

from tests.model.random_programs import Program

FOUND: dict[str, Program] = {
    # A merge of several bases read a base of theirs that a cleanup had taken from an open table,
    # and said that the store had failed.
    "a_base_of_bases_that_a_cleanup_took": (
        ("fork", "main", "s", None),
        ("put", "main", ((("node:Person", "d"), (("name", "d"), ("age", None), ("nick", "B"), ("score", 1.5))),)),
        ("put", "s", ((("node:Person", "b"), (("name", "b"), ("age", 2), ("nick", None), ("score", -0.0))),)),
        ("optimize", "main"),
        ("fork", "main", "r", None),
        ("rewrite", "s"),
        ("merge", "s", "r", "wrong"),
        ("merge", "main", "s", "theirs"),
        ("fault", 8, "after", ("merge", "r", "main", "none")),
        ("cleanup", 1),
        ("merge", "s", "main", "none"),
    ),
    # The model took a deletion that meets an update over contradicting bases for decided.
    "a_deletion_and_an_update_over_two_bases": (
        ("fork", "main", "p", None),
        ("put", "main", ((("node:Person", "a"), (("name", "a"), ("age", 6), ("nick", "A"), ("score", 0.0))),)),
        ("put", "p", ((("node:Person", "a"), (("name", "a"), ("age", 5), ("nick", "A"), ("score", 0.0))),)),
        ("fork", "main", "q", None),
        ("merge", "p", "main", "theirs"),
        ("merge", "q", "p", "theirs"),
        ("cut", "p", ("node:Person", "a")),
        ("merge", "main", "p", "rows"),
    ),
    # A pick across a schema change took an edge, but did not restore the nodes that the branch had deleted.
    "a_pick_that_restores_nodes_across_schemas": (
        ("fork", "main", "p", None),
        ("schema", "main", "add"),
        ("put", "main", ((("node:Team", "t"), (("title", "x"),)),)),
        ("put", "main", ((("edge:Likes", "i2"), (("src", "c"), ("dst", "b"))),)),
        ("replay", "revert", 1, "p", "none"),
        ("replay", "pick", 4, "p", "theirs"),
    ),
    # The model credited the null of a column that a schema change added to the first load, not to the schema change.
    "blame_of_a_column_that_a_branch_added": (
        ("fork", "main", "p", None),
        ("put", "main", ((("node:Person", "a"), (("name", "a"), ("age", 6), ("nick", "A"), ("score", 0.0))),)),
        ("put", "p", ((("node:Person", "a"), (("name", "a"), ("age", 5), ("nick", "A"), ("score", 0.0))),)),
        ("schema", "main", "add"),
        ("merge", "p", "main", "entity values"),
    ),
    # The model forgot that the entities of a type that the second state does not have count as deleted.
    "a_diff_back_to_a_schema_without_a_type": (
        ("fork", "main", "p", None),
        ("put", "main", ((("edge:Leads", "l3"), (("src", "b"), ("dst", "s"))),)),
        ("schema", "main", ("set", "knows.card", (0, 1))),
        ("schema", "p", ("set", "grades", True)),
        (
            "put",
            "p",
            (
                (
                    ("node:Person", "c"),
                    (("name", "c"), ("age", 1), ("nick", None), ("score", 1.5), ("size", None), ("level", "low")),
                ),
            ),
        ),
        ("merge", "p", "main", "mixed"),
        ("put", "p", ((("edge:Likes", "i2"), (("src", "b"), ("dst", "b"))),)),
        ("schema", "p", ("cut", "level.values", "mid")),
        ("merge", "p", "main", "entity none"),
        ("put", "main", ((("edge:Grades", '["a","y"]'), (("src", "a"), ("dst", "t"), ("kind", "y"), ("mark", 1))),)),
        ("diff", 10, 2),
    ),
}

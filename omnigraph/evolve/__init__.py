"""Schema apply: a graph with data gets another schema, as one commit."""

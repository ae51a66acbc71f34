"""Schema apply: migrates a graph with data to another schema, as one commit."""

"""What a valid graph is: one evaluator for every way in.

Mutations, loads and merges hand over what they want to change; the rules look at that and at the
rows they must ask for, never at the whole graph.
"""

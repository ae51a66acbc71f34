"""Everything durable: Lance tables, control objects, and the one door that effects pass through.

The only package that imports lance and obstore. It knows tables, rows and files; what a commit or
a branch means is the business of `history`.
"""

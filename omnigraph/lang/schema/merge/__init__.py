"""Three-way schema merges, which combine the changes that two branches made since their common base.

Declarations are matched by id, never by name. They are compared slot by slot: a slot is the smallest part that is
merged independently, such as a name or a default. Changes that cannot be combined become conflicts. The package is
pure: it reads no data and changes nothing. Read `merge` first. `slots` defines what is compared.
"""

from .conflicts import Decide, DroppedEdit, SchemaConflict, SchemaMerge, SchemaVersion, Side, SourcedSchema, Winner
from .merge import merge_schemas
from .numbering import renumber_ir

__all__ = [
    "Decide",
    "DroppedEdit",
    "SchemaConflict",
    "SchemaMerge",
    "SchemaVersion",
    "Side",
    "SourcedSchema",
    "Winner",
    "merge_schemas",
    "renumber_ir",
]

"""Three-way schema merges, which combine the changes of two branches since their common base.

Changes are compared slot by slot and matched by id, never by name; changes that cannot be combined become conflicts.
The package is pure: it reads no data and changes nothing. Start with `merge`; `slots` defines what is compared.
"""

from .conflicts import Decide, SchemaConflict, SchemaMerge, SchemaVersion, Side, SourcedSchema
from .merge import merge_schemas
from .numbering import renumber_ir

__all__ = [
    "Decide",
    "SchemaConflict",
    "SchemaMerge",
    "SchemaVersion",
    "Side",
    "SourcedSchema",
    "merge_schemas",
    "renumber_ir",
]

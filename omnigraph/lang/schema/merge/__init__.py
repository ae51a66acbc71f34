"""Three-way merges of schemas: combines what two branches changed since their common base.

Changes are compared slot by slot and by identity, never by name; what cannot be combined becomes a conflict. The
package is pure: it reads no data and changes nothing. Start with `merge`; `slots` defines what is compared.
"""

from .conflicts import Decide, DroppedEdit, SchemaConflict, SchemaMerge, SchemaVersion, Side, SourcedSchema
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
    "merge_schemas",
    "renumber_ir",
]

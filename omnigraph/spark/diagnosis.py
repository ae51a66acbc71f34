"""Diagnosis of what Spark needs of a machine, for `omnigraph doctor`.

Lives here because only this package knows which Java a session starts with.
"""

import os
import sys
from pathlib import Path

from omnigraph.maintenance.doctor import EnvironmentDiagnosis

from .session import OLDEST_JAVA, find_java


def diagnose_java() -> EnvironmentDiagnosis:
    """Diagnose the Java that a session would start with."""
    java_path = find_java(os.environ, Path(sys.prefix))
    if java_path is not None:
        return EnvironmentDiagnosis("java", "ok", str(java_path))
    hint = f"only Spark needs Java: install {OLDEST_JAVA} or newer, or set JAVA_HOME"
    return EnvironmentDiagnosis("java", "warning", "not found", hint)

"""Diagnose whether a machine meets the Spark requirements, for `omnigraph doctor`.

This module is in the `spark` package because that package also chooses the Java installation for a session.
"""

import os
import sys
from pathlib import Path

from omnigraph.maintenance.doctor import EnvironmentDiagnosis

from .session import OLDEST_JAVA, find_java


def diagnose_java() -> EnvironmentDiagnosis:
    """Diagnose the Java installation that a session would use."""
    java_path = find_java(os.environ, Path(sys.prefix))
    if java_path is not None:
        return EnvironmentDiagnosis("java", "ok", str(java_path))
    hint = f"only Spark needs Java: install version {OLDEST_JAVA} or newer, or set JAVA_HOME"
    return EnvironmentDiagnosis("java", "warning", "not found", hint)

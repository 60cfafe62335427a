"""The operator's command line. It shares the functions' code, which is a zip's root and installed nowhere."""

import sys
from pathlib import Path

FUNCTIONS = str(Path(__file__).resolve().parent.parent / "functions")
if FUNCTIONS not in sys.path:
    sys.path.append(FUNCTIONS)

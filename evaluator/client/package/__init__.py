"""Gives `import pkb` its names: this file is `pkb/__init__.py` of the wheel. Imported by nothing of
this tree.
"""

from pkb.client.library import *  # noqa: F403
from pkb.client.library import __all__ as __all__

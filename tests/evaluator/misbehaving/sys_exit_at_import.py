# verdict: import_error
# cheat: raises SystemExit(0) on import, which `except Exception` does not catch
import sys

sys.exit(0)

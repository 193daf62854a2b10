# like: sys_exit_at_import
# verdict: runtime_error
# cheat: leaves with status 0 while it is imported, hoping that a clean exit reads as success
import os

os._exit(0)

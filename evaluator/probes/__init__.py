"""Programs that try, from inside a sandbox, what gets out of it and what its GPUs can do. Imported
by nobody: the self-check starts them by their module paths.
"""

"""What `make` does: install, start, stop, check. Standard library only: it makes the .venv."""

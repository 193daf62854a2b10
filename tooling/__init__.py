"""Install, start, stop and check for `make`. Standard library only: it makes the .venv."""

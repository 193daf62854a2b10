# Everything here is a name for a command of `tooling/`, which needs Python 3.11 and nothing else.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
COMMANDS := up down check test test-all test-deploy lint format clean screenshots

.PHONY: help $(COMMANDS)
.DEFAULT_GOAL := help

help:
	@echo 'make up           install, start the site and a worker, judge one kernel; safe to repeat'
	@echo 'make down         stop what `make up` started'
	@echo 'make check        lint, types, import contracts and quick tests, in two minutes'
	@echo 'make test         lint, types, import contracts, tests (what CI runs)'
	@echo 'make test-all     the same, and kernels that try what others try in another way'
	@echo 'make test-deploy  the commands of docs/deploy.md, on three Debian systems; needs root and mmdebstrap'
	@echo 'make lint         lint, types and import contracts only'
	@echo 'make format       rewrite files in the house format'
	@echo 'make screenshots  pictures of the running site, into docs/images'
	@echo 'make clean        `make down`, then remove .venv, .local and caches'

$(COMMANDS):
	@test -n '$(PYTHON)' || { \
		echo 'Python 3.11 or newer is needed: install it, or say PYTHON=/path/to/python3.11'; exit 1; }
	@'$(PYTHON)' -m tooling $@

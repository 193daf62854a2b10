"""Holds small helpers that several rooms need; each says by whom.

Imported by every room; imports none. `secret_key_file` needs the standard library only: `make up`
imports it before anything is installed.
"""

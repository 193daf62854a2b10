"""Connects the site with the evaluator: leases, heartbeats, reports, hosts, the catalogue; the only
writer of results.

Imported by api and commands.
"""

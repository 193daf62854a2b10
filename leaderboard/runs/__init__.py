"""Connects the site with the evaluator: leases, heartbeats, reports, hosts, the catalogue.

The only writer of runs and results. Imported by api, publishing and commands.
"""

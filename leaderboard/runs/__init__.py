"""Connects the site with the evaluator: leases, heartbeats, reports, hosts, catalogue, notices.

Imported by pages, api, operations and commands; nothing else writes results.
"""

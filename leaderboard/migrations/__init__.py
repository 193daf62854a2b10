"""Holds the steps of the database, each with the code that it needs.

Imported by Django.
"""

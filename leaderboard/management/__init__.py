"""Holds the commands of `manage.py`.

Imported by Django.
"""

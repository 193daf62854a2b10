"""Holds one command a module.

Imported by Django.
"""

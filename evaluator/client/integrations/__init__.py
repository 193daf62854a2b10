"""Adapts the judge to frameworks that train and evaluate models, one a module. Imported by users
alone, each with its framework installed.
"""

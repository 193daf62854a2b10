"""Shows submissions ranked: the leaderboard, the matrix, categories, with their figures.

Imported by urls.
"""

"""Shows submissions ranked: the leaderboard, the matrix, categories, with their figures.

Imported by urls and by page rooms that show a part of a board.
"""

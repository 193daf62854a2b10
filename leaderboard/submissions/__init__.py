"""Takes in what people hand in: archives, trees and sources, all of an upload or nothing.

The only writer of submissions and kernels. Imported by runs, account pages, api and commands.
"""

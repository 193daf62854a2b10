"""The trusted judge: runs the phases of a job and decides its verdict. Imported by the ways in at
the top.
"""

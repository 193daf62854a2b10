"""The memory that judge and ranks share, and how tensors lie in it. Imported by the judge, the
oracle, the sandbox and, beside a submission, by ranks.
"""

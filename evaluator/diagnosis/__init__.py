"""Finds the cause of a failure in its text. Imported by the judge, the sandbox, the exported
facts and, for the words of their own failures, by ranks."""

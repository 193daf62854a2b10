"""Reads what ranks recorded once the verdict is known: timelines, and how bytes move.
Imported by the judge and, for what they record, by ranks."""

"""The judge's own ranks: they make inputs and true answers, and compare. Imported by the judge."""

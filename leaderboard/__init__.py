"""The site: submissions in, results out. It never loads torch."""

"""Try wrong and honest answers, and the rules of the format, against problems."""

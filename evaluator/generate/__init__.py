"""Asks language models for kernels, shows them what the judge finds, packs what they made.
Imported by nothing: `python -m evaluator.generate` runs it."""

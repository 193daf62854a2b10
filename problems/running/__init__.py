"""Call a problem's solution on ranks, which may share one GPU."""

"""What a kernel shows of itself once its verdict is known: timelines, and how its bytes move."""

"""What the GPUs of a host reach, measured beside their datasheet."""

"""What an analyst loses through the protection."""

"""What an analyst loses by the protection."""

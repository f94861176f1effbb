"""What an attacker finds in protected data."""

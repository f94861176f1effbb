"""Attacks on protected data."""

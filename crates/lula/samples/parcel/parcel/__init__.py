"""Quotes shipping prices."""

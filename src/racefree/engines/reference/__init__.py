"""Slow, readable answers that the fast engine is tested against: the specified checker, and brute force."""

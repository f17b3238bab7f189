"""Decides questions about launches, here or in processes beside this one: several threads' at a time, many at once."""

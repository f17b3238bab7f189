"""Arm Ethos-U register command streams as engine programs."""

"""The eager reading of a launch: what one run of its program instances touched, and whether a verdict can be true of it."""

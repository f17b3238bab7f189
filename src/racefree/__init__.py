"""racefree decides, without the accelerator, whether an accelerator kernel has a data race."""

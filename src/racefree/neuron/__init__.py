"""BIR documents of AWS Neuron: read, lowered to engine programs, checked, generated and damaged on purpose."""

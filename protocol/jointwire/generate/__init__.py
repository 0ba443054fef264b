"""What is derived from the definition of the wire and kept as files: `python -m jointwire.generate`."""

"""Files that are derived from the definition of the wire: `python -m jointwire.generate`."""

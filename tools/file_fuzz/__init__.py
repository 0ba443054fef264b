"""Damaged files through all that reads files: no traceback, no hang, no memory without end, no file elsewhere."""

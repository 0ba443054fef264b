"""`./run bench accuracy`: how near a fit comes to the truth, beside the Cramér–Rao bound of what was recorded."""

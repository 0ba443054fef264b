"""Damaged frames by the million, through the decoders of both halves of the wire and through the loss ledger."""

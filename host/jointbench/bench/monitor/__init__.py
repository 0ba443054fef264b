"""The live page of a bench: what its boards say, whoever holds them, and a button that stops them."""

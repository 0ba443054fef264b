"""What the live feed of a bench costs the program that records it."""

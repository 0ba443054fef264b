"""Tests that talk to a board, and the virtual bench they run on."""

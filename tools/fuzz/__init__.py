"""Damage through what reads it: frames through both halves of the wire, files and edits through all their readers."""

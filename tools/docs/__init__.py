"""The documentation: its site, its commands, its pictures."""

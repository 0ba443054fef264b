"""Plain scripts to copy and change; `docs/python.md` runs them."""

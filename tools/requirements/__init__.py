"""The repository's requirements: their page, and whether each is shown by a test that there is."""

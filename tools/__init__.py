"""What surrounds the packages: set-up, checks, demonstrations."""

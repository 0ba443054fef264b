"""What the wire costs the host: decoding against a peer, and a whole bench of boards end to end."""

"""`./run bench friction`: how well and how soon the Makkar law is fitted, beside a global search and a swarm."""

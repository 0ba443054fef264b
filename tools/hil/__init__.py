"""`./run hil`: the bench tests on the bench you name."""

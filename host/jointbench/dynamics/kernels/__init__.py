"""The dynamics' loops, compiled when they are first called and kept on disk; eight samples at a time.

Importing them imports the compiler: who calls them does so where they are called.
"""

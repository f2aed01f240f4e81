"""Small dense linear algebra, compiled, shared by several policies."""

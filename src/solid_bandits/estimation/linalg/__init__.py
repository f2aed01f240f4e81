"""Small dense linear algebra, compiled: what several policies share."""

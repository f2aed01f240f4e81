"""The closest model with another optimal arm, compiled: in closed form, pruned over many pairs, in a ball."""

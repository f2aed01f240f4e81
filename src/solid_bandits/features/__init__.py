"""Named values as features: which names there are, of which types, and the columns and scales that follow from rows."""

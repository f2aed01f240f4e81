"""Named values as features: the declared names and their types, and the columns and scales that follow from rows."""

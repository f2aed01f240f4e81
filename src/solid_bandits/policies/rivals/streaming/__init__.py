"""SOLID for features that come with each decision: the policy, its state, its sums, one step."""

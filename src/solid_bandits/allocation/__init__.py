"""The allocation that the lower bound asks for at the estimates, solved inside the loop, compiled."""

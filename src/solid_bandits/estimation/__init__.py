"""The regularised least-squares estimator of Section 2, and what policies ask of it."""

"""The regularised least-squares estimator of Section 2, and the quantities that policies ask of it."""

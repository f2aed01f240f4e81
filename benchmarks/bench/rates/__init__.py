"""Cost of pieces of work on this machine: kernels, the forms in which they can be done, and a meter.

A *kernel* is a piece of work of one shape, such as "the inner product of a vector with n columns of length
d". It has counts (multiply-adds; divisions, roots, logarithms and exponentials; numbers read and written) and
one or more *forms*, small programs that do it. Its cost at a shape is measured in the run that uses it, and
the fastest form counts: plain loops, blocked loops, BLAS or NumPy's vector functions, whatever wins at that
shape. Repetitions are chained, each waiting for the result of the one before, because the parts of a step
wait for each other too.
"""

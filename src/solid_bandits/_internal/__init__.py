"""Parts that every room uses and no user sees: the compiler and its cache, checks of arguments, files, wording."""

"""Pages, figures and documents about the paper's claims; reads tables, simulates nothing."""

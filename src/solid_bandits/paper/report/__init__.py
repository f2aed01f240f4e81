"""Pages, figures and documents on the paper's claims; reads tables, simulates nothing."""

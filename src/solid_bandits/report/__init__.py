"""Figures, pages and printed tables made from tables. Nothing here simulates.

The modules are imported one by one (`report.figure`, `report.page`, `report.table`), so that printing a table does
not load the plotting libraries.
"""

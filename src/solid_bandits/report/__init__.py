"""Tables to a figure, a page and a printed table. Nothing here simulates.

The modules are imported one by one (`report.figure`, `report.page`, `report.table`), so that who prints a table
does not wait for the plotting libraries.
"""

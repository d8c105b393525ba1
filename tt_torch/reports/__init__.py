"""A database of results, and its reports: a spreadsheet, a web page, a comparison of two commits."""

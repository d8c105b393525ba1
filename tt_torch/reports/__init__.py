"""Results in a database, and what is made of them: a spreadsheet, a web page, a comparison of two commits."""

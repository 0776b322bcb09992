"""What records say: results by task and model, significance tests, tables, figures and the page.

`report` writes everything; `tables` and `figures` build the parts. May import `running` (records) and
`description`; nothing here runs a model.
"""

"""Results by task and model, significance tests, tables, figures and the report page.

`report` writes everything; `tables` and `figures` make the parts. May import `running` (records) and
`description`; nothing here runs a model.
"""

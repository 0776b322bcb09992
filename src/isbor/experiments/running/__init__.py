"""How the jobs of an experiment run: processes, limits, grid search, measures, records and their store.

`runner` starts here; `worker` is the other side, in the process of a job. May import `description`, not
`reporting`.
"""

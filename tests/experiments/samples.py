"""Made-up records, for the tests of what is shown of them."""

from isbor.experiments import CrossValidation, Experiment, Holdout, Model, Record, Results, TableFile, Task

A, B, C = (Model(name, name.upper(), "isbor:ISBOR") for name in "abc")
ONE, TWO, THREE = (
    Task(f"t{k}", f"Task {k}", TableFile(f"{k}.csv", "y", digest=str(k)), Holdout(100)) for k in (1, 2, 3)
)
FOLDS = Task("folds", "Folds", TableFile("f.csv", "y", digest="f"), CrossValidation(5))
LATE = "Not finished after 9 s."
ERRORS = {
    ("t1", "a"): [0.41, 0.43, 0.45],
    ("t1", "b"): [0.5, 0.5, 0.5],
    ("t1", "c"): [0.6, LATE, LATE],
    ("t2", "a"): [0.3, 0.1, 0.2],
    ("t2", "b"): [0.1, "Broken.", None],
    ("t2", "c"): [LATE, LATE, "Broken."],
}


def experiment(models=(A, B, C), tasks=(ONE, TWO), splits=3, **facts):
    return Experiment("e", "Experiment", models, tasks, splits, **facts)


def record_of(job, mae, **facts):
    """Return the record of a job; a string in place of the error is the reason why there is none."""
    place = job.task.name, job.model.name, job.split
    if isinstance(mae, str):
        limits = facts.get("limits", {"seconds": 9.0, "memory": 2.5})
        status = "timeout" if mae == LATE else "failed"
        return Record(*place, status, mae, seconds={"total": 9.0}, limits=limits)
    standard = {
        "n_train": 100,
        "n_test": 50,
        "metrics": {"mae": mae, "accuracy": 1 - mae},
        "seconds": {"search": 2.0, "fit": 1.0, "predict": 0.5, "total": 4.0},
    }
    return Record(*place, "ok", **{**standard, **facts})


def records_of(experiment, errors, **facts):
    """Return records by key from errors by task and model, and from `facts`, functions of a job."""
    found = {}
    for job in experiment.jobs():
        of_model = errors.get((job.task.name, job.model.name), [])
        if job.split < len(of_model) and of_model[job.split] is not None:
            more = {name: of(job) for name, of in facts.items()}
            found[job.key] = record_of(job, of_model[job.split], **more)
    return found


def results_of(experiment, errors, **facts):
    return Results.of(experiment, records_of(experiment, errors, **facts))

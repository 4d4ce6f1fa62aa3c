"""Says which part of which job it is, and how far it is."""
import ostler


@ostler.function
def report():
    job = ostler.request().job
    if job is None:
        return None
    ostler.request().progress({"done": 0.5})
    ostler.request().log("half way", level="warning")
    return [job.id, job.attempt, job.shard, job.shard_count, job.depth]

"""Jobs that make jobs: the words of a folder's texts, counted file by file.

`survey` is a parent. It submits a job for each file and returns; the server keeps it open until all
of them have ended, and no worker waits meanwhile. Tried again after a crash, it finds the children
that it has. `total` reads what they found. `longest` is one job on several workers at once, each
with its share of the files.
"""

import os

import ostler

STEP = 1000  # lines between two words about the progress


@ostler.function
def survey(folder: str) -> dict:
    """A job for each text of the folder; their ids by name."""
    jobs = {}
    for name in texts(folder):
        path = os.path.join(folder, name)
        job = ostler.submit_job("words", "count", kwargs={"path": path}, tags={"file": name})
        jobs[name] = job.id
        ostler.request().progress({"submitted": len(jobs)})
    return jobs


@ostler.function
def count(path: str) -> int:
    """The words of one file."""
    request, words = ostler.request(), 0
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                words += len(line.split())
                if number % STEP == 0:
                    request.progress({"lines": number, "words": words})
    except OSError as error:
        # Whoever writes the file may put it there anew: that is worth another attempt.
        raise ostler.Retryable(f"{path}: {error.strerror}") from error
    request.log(f"{path}: {words} words")
    return words


@ostler.function
def total(survey_id: str) -> int:
    """The words that a completed survey found."""
    survey = ostler.Job(survey_id).refresh()
    if survey["status"] != "COMPLETED":
        raise ValueError(f"the survey is {survey['status']}")
    return sum(ostler.Job(id).refresh()["result"] for id in survey["result"].values())


@ostler.function
def longest(folder: str) -> list:
    """The longest file of this worker's share, and its size; submit it with a worker_count."""
    request = ostler.request()
    share = texts(folder)[request.shard :: request.shard_count]
    sizes = [[os.path.getsize(os.path.join(folder, name)), name] for name in share]
    return max(sizes, default=[0, None])


def texts(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith((".md", ".txt")))

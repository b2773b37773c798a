"""Where a job stands in the queue of Slurm, from what squeue 22.05 prints."""

from linkwise.launch.run.launch_place import Phase, State
from linkwise.launch.run.slurm_queue import QueueNews, QueuePlace, queue_place, waiting_text

SQUEUE = "7|train|2026-12-01T09:00:00\n8|other|N/A\n9|train|N/A\n42|train|2026-12-01T10:00:00\n"


def waiting(reason):
    return State(phase=Phase.WAITING, reason=reason)


def test_position_counts_the_jobs_of_the_same_partition():
    assert queue_place("42", lambda _: SQUEUE) == QueuePlace(
        partition="train", position=3, waiting=3, starts="2026-12-01T10:00:00"
    )
    assert queue_place("9", lambda _: SQUEUE).starts == ""


def test_job_that_squeue_does_not_show_has_no_position():
    assert queue_place("5", lambda _: SQUEUE) is None
    assert queue_place("5", lambda _: "slurm_load_jobs error: Unable to contact slurm controller\n") is None


def test_reason_is_told_in_plain_words_where_they_are_known():
    place = QueuePlace(partition="train", position=2, waiting=5)
    told = waiting_text("42", "Resources", place)
    assert told == "job 42 waits in the queue of train, 2 of 5: Resources, what it asks for is in use"
    assert waiting_text("42", "ReqNodeNotAvail, UnavailableNodes:n1", None).endswith("is down or reserved")
    assert waiting_text("42", "NewReason", None) == "job 42 waits in the queue: NewReason"


def test_queue_is_told_seldom():
    said, at = [], [0.0]
    news = QueueNews(say=said.append, ask=lambda _: "", clock=lambda: at[0])
    for at_s, reason, count in (
        (0.0, "", 0),
        (2.0, "Priority", 1),
        (4.0, "Resources", 1),  # another reason, too soon
        (62.0, "Resources", 2),
        (600.0, "Resources", 2),
        (662.0, "Resources", 3),
    ):
        at[0] = at_s
        news.tell(waiting(reason), "42")
        assert len(said) == count, (at_s, said)

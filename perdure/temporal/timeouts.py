"""Timeouts and retries that workflows, activities and clients share."""

from datetime import timedelta

from temporalio.common import RetryPolicy

HEARTBEAT_INTERVAL = timedelta(seconds=0.25)
"""Time between two heartbeats, which bounds how long an interrupt takes to reach an activity; that
of a process with many steps at work is longer."""

HEARTBEAT_TIMEOUT = timedelta(seconds=2)
"""Longest silence of a worker before another one takes over its activity."""

BATCH_HEARTBEAT_TIMEOUT = timedelta(seconds=5)
"""The same for the steps of a batch's samples, at least: they send fewer heartbeats then."""

TASK_TIMEOUT = timedelta(seconds=2)
"""Time after which a conversation's workflow task of a lost worker goes to another."""

BATCH_TASK_TIMEOUT = timedelta(seconds=5)
"""The same for a batch, whose history is longer, and for which nobody waits that closely."""

SETUP_TIMEOUT = timedelta(seconds=600)
"""Time limit of a sample's setup command."""

CLONE_TIMEOUT = timedelta(hours=7)
"""Time limit of the clone of a repository, which workers stop sooner by a setting of their own."""

FIRST_RETRY = timedelta(milliseconds=100)
"""Time before a step of a lost worker begins again; what waits for others sets its own delay."""

UNLIMITED_RETRIES = RetryPolicy(
    initial_interval=FIRST_RETRY, maximum_interval=timedelta(seconds=30)
)

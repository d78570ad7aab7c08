"""Timeouts and retries that workflows, activities and clients share."""

from datetime import timedelta

from temporalio.common import RetryPolicy

HEARTBEAT_INTERVAL = timedelta(seconds=0.25)
"""Time between two heartbeats, which bounds how long an interrupt takes to reach an activity."""

HEARTBEAT_TIMEOUT = timedelta(seconds=5)
"""Longest silence of a worker before another one takes over a batch's activity."""

TASK_TIMEOUT = timedelta(seconds=5)
"""Time after which a workflow task of a lost worker goes to another."""

SETUP_TIMEOUT = timedelta(seconds=600)
"""Time limit of a sample's setup command."""

UNLIMITED_RETRIES = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=30)
)

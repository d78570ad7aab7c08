"""The names and the environment variables that the workers of a run have in common."""

import os

from perdure.storage.store import S3Access

BUCKET = "chaos"
USER = "chaos"
TASK_QUEUE = "chaos"

# What the caller's own settings would otherwise decide for the workers.
FOREIGN_PREFIXES = ("AWS_", "OPENAI_", "PERDURE_", "TEMPORAL_")


def worker_environment(temporal: str, endpoint: str, access: S3Access) -> dict[str, str]:
    """Return the environment of a worker: the addresses of its servers."""
    own = {
        name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)
    }
    return own | {
        "AWS_ACCESS_KEY_ID": access.access_key or "",
        "AWS_SECRET_ACCESS_KEY": access.secret_key or "",
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "OPENAI_API_KEY": "the scripted model asks for none",
        "PERDURE_LOG_FORMAT": "text",  # as those who look for errors in it read it
        "PERDURE_STORE": f"s3://{BUCKET}",
        "PERDURE_TASK_QUEUE": TASK_QUEUE,
        "PERDURE_USER": USER,
        "TEMPORAL_ADDRESS": temporal,
    }

"""Make the bucket of the store, if it is not there: `python make_bucket.py`."""

import os
import time

import boto3
from botocore.exceptions import ClientError, EndpointConnectionError

THERE = ("BucketAlreadyExists", "BucketAlreadyOwnedByYou")


def main() -> None:
    """Wait for the store, and make the bucket."""
    client = boto3.client("s3")
    for _ in range(60):
        try:
            client.create_bucket(Bucket=os.environ["BUCKET"])
        except EndpointConnectionError:
            time.sleep(1)
        except ClientError as error:
            if error.response["Error"]["Code"] in THERE:
                return
            raise
        else:
            return
    raise SystemExit("The store has not answered for a minute.")


main()

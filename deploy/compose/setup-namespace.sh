#!/bin/sh
# Make the namespace, unless it is there.
set -eu
until temporal operator cluster health --address temporal:7233; do sleep 1; done
temporal operator namespace describe --address temporal:7233 --namespace default ||
    temporal operator namespace create --address temporal:7233 --namespace default --retention 7d

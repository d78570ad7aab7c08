"""The tools of operators: deploy, reopen, purge, the watchdog and the codec server."""

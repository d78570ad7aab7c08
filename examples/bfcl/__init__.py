"""The multi-turn conversations of the Berkeley Function Calling Leaderboard, run by perdure."""

"""Scripted and recorded models, for the tests of users and of perdure itself."""

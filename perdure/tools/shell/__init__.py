"""The persistent shell behind the terminal tool."""

"""The IPython kernel behind the `ipython` tool."""

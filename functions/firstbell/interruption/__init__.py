"""Interruptions: from AWS's notice that an instance goes, to a drained node. `handler.handler` is the only door."""

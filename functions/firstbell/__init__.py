"""Firstbell: room ready before the class walks in. All that runs in Lambda lives below this package."""

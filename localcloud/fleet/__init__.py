"""Auto Scaling of the local cloud: groups that launch instances which join the API server as nodes.

What it does as AWS does, and by which page, is the table in localcloud/README.md.
"""

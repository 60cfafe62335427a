"""A school morning on the local cloud. It sees Firstbell from outside, as a portal, a hub and an operator do."""

"""The workshop: sets up and checks the tools that the project is built with. Nothing of it is deployed."""

"""Pure arithmetic of capacity: quantities, density, placement, reservations. Standard library; time is an argument."""

"""Pure arithmetic of capacity: quantities, density, placement, reservations. Standard library only; time is an argument."""

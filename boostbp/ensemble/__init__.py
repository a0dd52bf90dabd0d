"""The model that `fit` leaves: candidates trained, weighed on held-out rows, summed."""

"""Accuracy of the deep model beside tuned rivals and controls, on synthetic targets and on tables."""

"""What people look at: comparisons, tables and plots."""

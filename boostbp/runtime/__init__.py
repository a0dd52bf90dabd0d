"""What all rooms run on: threads and their end, the group of workers, memory, files, messages and checks."""

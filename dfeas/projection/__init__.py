"""What a run will take, before it begins: memory of each process, bytes and time of a read."""
